/** A file system without room or read-only, mounted for the test: the error comes before the first write. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { emptyNodeConfig as empty } from '../../../machineconfig/node-config.ts';
import { configOf } from '../../../test/fixtures/configs.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { fill, noMounts, smallDisk } from '../../../test/fixtures/small-disk.ts';
import { verifyConfig, writeConfig } from '../../../test/fixtures/standard-content.ts';
import { createTree, first, second, snapshot } from '../../../test/fixtures/written-tree.ts';
import { finishOrUndoWrite } from './write-content.ts';
import { NoRoomError } from './write-log.ts';

const signal = deadline(600_000);
test.skipIf(noMounts)('a config that would not fit is refused before anything is written', async () => {
  const disk = await smallDisk(4 * 1024 * 1024);
  const target = await createTree(disk);
  const before = await snapshot(target);
  const large = configOf({ '/etc/large': 'x'.repeat(8 * 1024 * 1024) });
  const refused = writeConfig(target, { from: empty, to: large }, { signal });
  await expect(refused).rejects.toBeInstanceOf(NoRoomError);
  await expect(refused).rejects.toThrow(/^\/etc: \d+ KiB are needed /);
  expect(await snapshot(target)).toEqual(before);
});

test.skipIf(noMounts)(
  'a root without room, as a composefs is, takes a config below /etc and /var',
  async () => {
    const disk = await smallDisk(4 * 1024 * 1024);
    const target = await createTree(disk);
    for (const name of ['etc', 'var']) {
      await execa('mount', ['-t', 'tmpfs', '-o', 'size=16M,mode=755', 'tmpfs', path.join(target.root, name)]);
    }
    await fill(disk);
    await writeConfig(target, { from: empty, to: configOf({ '/etc/a.conf': 'a\n' }) }, { signal });
    expect(await readFile(path.join(target.root, 'etc/a.conf'), 'utf8')).toBe('a\n');
  },
);

test.skipIf(noMounts)('a read-only /etc keeps everything as it was', async () => {
  const target = await createTree(await smallDisk(16 * 1024 * 1024));
  await writeConfig(target, { from: empty, to: first }, { signal });
  const before = await snapshot(target);
  const etc = path.join(target.root, 'etc');
  await execa('mount', ['--bind', etc, etc]);
  await execa('mount', ['-o', 'remount,ro,bind', etc]);
  // Neither where the daemon sees the host's root, nor the name under which a file is written first.
  await expect(writeConfig(target, { from: first, to: second }, { signal })).rejects.toThrow(
    /^\/etc\/[\w./-]+: EROFS: read-only file system \(\w+\)$/,
  );
  expect(await snapshot(target)).toEqual(before);
  expect(await finishOrUndoWrite(target)).toBe('nothing');
  await execa('umount', [etc]);
  await writeConfig(target, { from: first, to: second }, { signal });
  expect(await verifyConfig(target.root, second)).toEqual([]);
});

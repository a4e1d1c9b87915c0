import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { emptyNodeConfig as empty } from '../../machineconfig/empty-config.ts';
import { configOf } from '../../test/fixtures/configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { fill, noMounts, smallDisk } from '../../test/fixtures/small-disk.ts';
import { createTree, first, second, snapshot } from '../../test/fixtures/written-tree.ts';
import { readManagedPaths } from '../records/managed-paths.ts';
import { NoRoomError } from './room.ts';
import { verifyConfig } from './verify-config.ts';
import { finishOrUndoWrite, writeConfig } from './write-config.ts';

const signal = deadline(600_000);
test.skipIf(noMounts)(
  'a disk that fills up at any step leaves the old config or the new one',
  {
    timeout: patience(240_000),
  },
  async () => {
    const disk = await smallDisk(16 * 1024 * 1024);
    const target = await createTree(disk);
    await writeConfig(target, { from: empty, to: first }, { signal });
    const before = await snapshot(target);
    const managed = await readManagedPaths(target.root);
    let failures = 0;
    for (let filledAt = 0, steps = 1; filledAt < steps; filledAt += 1) {
      let emptied = async () => {};
      steps = 0;
      const beforeStep = async () => {
        if (steps === filledAt) emptied = await fill(disk);
        steps += 1;
      };
      const write = writeConfig(target, { from: first, to: second }, { signal, beforeStep });
      const failure = await write.then(
        () => undefined,
        (error: unknown) => error,
      );
      await emptied();
      if (failure === undefined) {
        expect(await verifyConfig(target.root, second)).toEqual([]);
        await writeConfig(target, { from: second, to: first }, { signal });
        continue;
      }
      // Where it could not be taken back on a full disk, it is at the next start.
      await finishOrUndoWrite(target);
      expect(await snapshot(target), `filled before step ${filledAt}`).toEqual(before);
      expect(await readManagedPaths(target.root)).toEqual(managed);
      steps = Math.max(steps, filledAt + 2);
      failures += 1;
    }
    expect(failures).toBeGreaterThan(10);
    await writeConfig(target, { from: first, to: second }, { signal });
    expect(await verifyConfig(target.root, second)).toEqual([]);
  },
);

test.skipIf(noMounts)('a config that would not fit is refused before anything is written', async () => {
  const disk = await smallDisk(4 * 1024 * 1024);
  const target = await createTree(disk);
  const before = await snapshot(target);
  const large = configOf({ '/etc/large': 'x'.repeat(8 * 1024 * 1024) });
  await expect(writeConfig(target, { from: empty, to: large }, { signal })).rejects.toThrow(NoRoomError);
  expect(await snapshot(target)).toEqual(before);
});

test.skipIf(noMounts)('a read-only /etc keeps everything as it was', async () => {
  const target = await createTree(await smallDisk(16 * 1024 * 1024));
  await writeConfig(target, { from: empty, to: first }, { signal });
  const before = await snapshot(target);
  const etc = path.join(target.root, 'etc');
  await execa('mount', ['--bind', etc, etc]);
  await execa('mount', ['-o', 'remount,ro,bind', etc]);
  await expect(writeConfig(target, { from: first, to: second }, { signal })).rejects.toThrow('EROFS');
  expect(await snapshot(target)).toEqual(before);
  expect(await finishOrUndoWrite(target)).toBe('nothing');
  await execa('umount', [etc]);
  await writeConfig(target, { from: first, to: second }, { signal });
  expect(await verifyConfig(target.root, second)).toEqual([]);
});

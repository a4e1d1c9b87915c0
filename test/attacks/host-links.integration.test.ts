/** A user with a home on the node, uid 1000, tries to have root's daemon write where only root may. */
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WriteTarget } from '../../daemon/content/write/write-content.ts';
import { takeSteps } from '../../daemon/files/write-step.ts';
import { emptyNodeConfig as empty, type NodeConfig } from '../../machineconfig/node-config.ts';
import { configOf, fileOf } from '../fixtures/configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { verifyConfig, writeConfig } from '../fixtures/standard-content.ts';
import { createTree, snapshot } from '../fixtures/written-tree.ts';

const signal = deadline(300_000);
const USER = 1000;
const HOME = '/var/home/core';
const keys: NodeConfig = configOf({}, { sshKeys: new Map([['core', ['ssh-ed25519 A']]]) });

let target: WriteTarget;
const at = (name: string) => path.join(target.root, name);
/** Whose it is and who may use it. */
async function rights(name: string): Promise<string> {
  const { uid, gid, mode } = await lstat(at(name));
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`;
}

beforeEach(async () => {
  target = await createTree();
  await mkdir(at('etc/systemd/system/sshd.service.d'), { recursive: true });
  await chown(at(HOME), USER, USER);
});
afterEach(() => rm(target.root, { recursive: true }));

/** The user's own, as a shell of theirs would make it. */
async function userLink(name: string, to: string): Promise<void> {
  await mkdir(path.dirname(at(name)), { recursive: true });
  for (let above = path.posix.dirname(name); above !== HOME; above = path.posix.dirname(above)) {
    await chown(at(above), USER, USER);
  }
  await symlink(to, at(name));
}

test.each([
  ['.ssh', '/etc/systemd/system/sshd.service.d'],
  ['.ssh', '../../../etc/systemd/system/sshd.service.d'],
  ['.ssh', '/etc/systemd/system/missing.service.d'],
  ['.ssh/authorized_keys.d', '/etc/systemd/system/sshd.service.d'],
])('%s as a link to %s: no key is written, and no directory is given away', async (name, to) => {
  await userLink(`${HOME}/${name}`, to);
  const before = [await snapshot(target), await rights('etc/systemd/system/sshd.service.d')];

  await expect(writeConfig(target, { from: empty, to: keys }, { signal })).rejects.toThrow(
    `${HOME}/${name} is a symbolic link, and not only root can write`,
  );

  expect([await snapshot(target), await rights('etc/systemd/system/sshd.service.d')]).toEqual(before);
  const [drift] = await verifyConfig(target.root, keys);
  expect(drift).toMatchObject({
    path: '/home/core/.ssh/authorized_keys.d/ignition',
    message: expect.stringContaining(`${HOME}/${name} is a symbolic link`),
  });
});

test('a link that comes after the keys were written is neither followed nor waited for', async () => {
  await writeConfig(target, { from: empty, to: keys }, { signal });
  await rm(at(`${HOME}/.ssh`), { recursive: true });
  await mkdir(at('etc/secret/authorized_keys.d'), { recursive: true });
  await writeFile(at('etc/secret/authorized_keys.d/ignition'), 'ssh-ed25519 A\n');
  await userLink(`${HOME}/.ssh`, '/etc/secret');
  const before = await rights('etc/secret/authorized_keys.d/ignition');

  const drifts = await verifyConfig(target.root, keys);
  await expect(writeConfig(target, { from: keys, to: empty, force: true }, { signal })).rejects.toThrow(
    'is a symbolic link',
  );

  expect(drifts).toHaveLength(1);
  expect(await readFile(at('etc/secret/authorized_keys.d/ignition'), 'utf8')).toBe('ssh-ed25519 A\n');
  expect(await rights('etc/secret/authorized_keys.d/ignition')).toBe(before);
});

test.each(['data', 'data/a', 'data/a/b'])('a link at %s leads no file away', async (name) => {
  const config = configOf({ '/home/core/data/a/b/file': 'x' });
  await userLink(`${HOME}/${name}`, '/etc');
  const before = await snapshot(target);
  await expect(writeConfig(target, { from: empty, to: config }, { signal })).rejects.toThrow(
    `${HOME}/${name} is a symbolic link`,
  );
  expect(await snapshot(target)).toEqual(before);
});

test('a hard link to /etc/shadow is replaced; the file itself is not written to, nor given away', async () => {
  const [shadow, text] = [await rights('etc/shadow'), await readFile(at('etc/shadow'), 'utf8')];
  await link(at('etc/shadow'), at(`${HOME}/x`));
  const user = { name: 'core' };
  const config = configOf({}, { files: new Map([['/home/core/x', fileOf('/home/core/x', 'x', { user })]]) });
  await writeConfig(target, { from: empty, to: config }, { signal });
  expect(await readFile(at(`${HOME}/x`), 'utf8')).toBe('x');
  await writeConfig(target, { from: config, to: empty }, { signal });
  expect([await rights('etc/shadow'), await readFile(at('etc/shadow'), 'utf8')]).toEqual([shadow, text]);
  // What comes back is a copy, still root's and nobody else's to read.
  expect(await rights(`${HOME}/x`)).toBe(shadow);
});

/**
 * Makes `data` a link to /etc and a directory again, over and over. What the daemon made at `data` meanwhile is in the
 * way of the directory's return: then there are two, and the swaps would end with that.
 */
const SWAP = `const { renameSync, rmSync, symlinkSync, unlinkSync } = require('node:fs');
const discard = (name) => { try { rmSync(name, { recursive: true, force: true }); } catch {} };
process.chdir(process.argv[1]);
process.stdout.write('ready');
for (;;) {
  try { renameSync('data', 'aside'); } catch {}
  try { symlinkSync('../../../etc', 'data'); } catch {}
  try { unlinkSync('data'); } catch {}
  try { renameSync('aside', 'data'); } catch { discard('aside'); }
}`;

test('a directory that is swapped for a link while it is written to never gives /etc away', {
  timeout: patience(120_000),
}, async ({ signal: ended }) => {
  const ids = { uid: USER, gid: USER };
  await mkdir(at(`${HOME}/data`));
  await chmod(at('etc'), 0o755);
  const [rightsBefore, namesBefore] = [await rights('etc'), await readdir(at('etc'))];
  const attacker = execa(process.execPath, ['-e', SWAP, at(HOME)], { reject: false });
  const counts = { written: 0, refused: 0 };
  try {
    await new Promise((resolve) => attacker.stdout.once('data', resolve));
    const data = `${HOME}/data`;
    const steps = [
      { kind: 'directory', name: data, mode: 0o777, ...ids },
      { kind: 'file', name: `${data}/f`, contents: Buffer.from('x'), mode: 0o666, ...ids },
      { kind: 'symlink', name: `${data}/l`, target: 'x', ...ids },
      { kind: 'directory', name: `${data}/d`, mode: 0o777, ...ids },
    ] as const;
    for (let round = 0; round < 150 || counts.written === 0 || counts.refused === 0; round += 1) {
      ended.throwIfAborted();
      for (const step of steps) {
        await takeSteps(target, [step]).then(
          () => (counts.written += 1),
          () => (counts.refused += 1),
        );
      }
    }
  } finally {
    attacker.kill('SIGKILL');
    await attacker;
  }
  expect(counts).toEqual({ written: expect.any(Number), refused: expect.any(Number) });
  expect([await rights('etc'), await readdir(at('etc'))]).toEqual([rightsBefore, namesBefore]);
});

test('a sparse file of 1 TiB is distinguished from the desired one without being read', async () => {
  const config = configOf({ '/home/core/x': 'x' });
  await writeConfig(target, { from: empty, to: config }, { signal });
  await truncate(at(`${HOME}/x`), 2 ** 40);
  const message = `/home/core/x: has ${2 ** 40} bytes, but should have 1`;
  expect(await verifyConfig(target.root, config)).toMatchObject([{ what: 'content', message }]);
  await expect(writeConfig(target, { from: config, to: keys }, { signal })).rejects.toThrow(
    'changed on the node',
  );
  await writeConfig(target, { from: config, to: configOf({ '/home/core/x': 'y' }), force: true }, { signal });
  expect(await readFile(at(`${HOME}/x`), 'utf8')).toBe('y');
});

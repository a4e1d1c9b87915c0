import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listDeployments, SysrootError } from './deployments.ts';

const COMMIT = 'a'.repeat(64);
const LINK = `/ostree/boot.1/stock/${'b'.repeat(64)}/0`;

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-deployments-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function writeEntry(boot: string): Promise<void> {
  await mkdir(path.join(boot, 'loader/entries'), { recursive: true });
  const entry = `title Debian (ostree:0)\nversion 1\noptions rw quiet ostree=${LINK}\n`;
  await writeFile(path.join(boot, 'loader/entries/ostree-1-stock.conf'), entry);
}

/** @returns a physical root with one deployment, and no entry that leads to it. */
async function makeSysroot(): Promise<string> {
  const sysroot = path.join(dir, 'sysroot');
  const link = path.join(sysroot, LINK);
  await mkdir(path.join(sysroot, 'boot'), { recursive: true });
  await mkdir(path.dirname(link), { recursive: true });
  await symlink(`../../../deploy/stock/deploy/${COMMIT}.0`, link);
  return sysroot;
}

test('lists what the entries of a /boot with a file system of its own lead to', async () => {
  const sysroot = await makeSysroot();
  const boot = path.join(dir, 'boot');
  await writeEntry(boot);
  expect(await listDeployments(sysroot)).toEqual([]);
  expect(await listDeployments(sysroot, boot)).toEqual([
    {
      id: `${COMMIT}.0`,
      commit: COMMIT,
      osName: 'stock',
      directory: path.join(sysroot, `ostree/deploy/stock/deploy/${COMMIT}.0`),
      kernelArguments: ['rw', 'quiet'],
    },
  ]);
});

test('says which entry leads to no deployment', async () => {
  const sysroot = await makeSysroot();
  await rm(path.join(sysroot, LINK));
  await writeEntry(path.join(sysroot, 'boot'));
  await expect(listDeployments(sysroot)).rejects.toThrow(SysrootError);
  await expect(listDeployments(sysroot)).rejects.toThrow('"Debian (ostree:0)" leads to no deployment');
});

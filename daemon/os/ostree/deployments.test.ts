import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import {
  formatOrigin,
  imageOfOrigin,
  listDeployments,
  parseBootloaderEntry,
  SysrootError,
} from './deployments.ts';

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

test.each([`../../../deploy/stock/deploy/${COMMIT}`, `../../../deploy/stock/${COMMIT}.0`, '../../..'])(
  'says which link leads to no deployment: %s',
  async (target) => {
    const sysroot = await makeSysroot();
    await rm(path.join(sysroot, LINK));
    await symlink(target, path.join(sysroot, LINK));
    await writeEntry(path.join(sysroot, 'boot'));
    await expect(listDeployments(sysroot)).rejects.toThrow(
      `expected a link to deploy/<os>/deploy/<commit>.<serial>, got ${target}`,
    );
  },
);

test('entries of other systems are none of the deployments', async () => {
  const sysroot = await makeSysroot();
  await writeEntry(path.join(sysroot, 'boot'));
  await writeFile(path.join(sysroot, 'boot/loader/entries/windows.conf'), 'title Windows\nefi /EFI/x.efi\n');
  expect((await listDeployments(sysroot)).map(({ id }) => id)).toEqual([`${COMMIT}.0`]);
});

/** As ostree 2022.7 wrote it. */
const ENTRY = `title Stock OS 1 (ostree:0)
version 2
options root=LABEL=root rw dyndbg="file a.c +p" ostree=/ostree/boot.1/stock/7c07/0
linux /ostree/stock-7c07/vmlinuz-6.12.57-shale
initrd /ostree/stock-7c07/initramfs-6.12.57-shale.img
`;

describe('bootloader entries', () => {
  it('name a deployment and its kernel arguments', () => {
    expect(parseBootloaderEntry('ostree-2-stock.conf', ENTRY)).toEqual({
      version: 2,
      title: 'Stock OS 1 (ostree:0)',
      kernelArguments: ['root=LABEL=root', 'rw', 'dyndbg="file a.c +p"'],
      deploymentLink: '/ostree/boot.1/stock/7c07/0',
    });
  });

  it('have white space at the end of a line, which says nothing', () => {
    const spaced = ENTRY.replaceAll('\n', ' \t\n');
    expect(parseBootloaderEntry('x.conf', spaced)).toEqual(parseBootloaderEntry('x.conf', ENTRY));
  });

  it('of other systems are left out', () => {
    expect(parseBootloaderEntry('windows.conf', 'title Windows\nefi /EFI/x.efi\n')).toBeUndefined();
  });

  it('without a version are refused', () => {
    const refused = (version: string) => () =>
      parseBootloaderEntry('x.conf', ENTRY.replace('version 2\n', version));
    expect(refused('')).toThrow('x.conf: version: expected a number, got nothing');
    expect(refused('version two\n')).toThrow('expected a number, got two');
  });
});

const image = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${'a'.repeat(64)}`);

describe('origin files', () => {
  it('name the image that a deployment was made from', () => {
    expect(imageOfOrigin(formatOrigin('shale/image/a', image))).toBe(image);
  });

  it('name none for what no image made', () => {
    expect(imageOfOrigin(formatOrigin('debian/12'))).toBeUndefined();
    expect(imageOfOrigin('[origin]\nimage=elsewhere\n')).toBeUndefined();
  });
});

test('the entry of the highest version boots first, whatever its name', async () => {
  const sysroot = await makeSysroot();
  const directory = path.join(sysroot, 'boot/loader/entries');
  await mkdir(directory, { recursive: true });
  for (const [index, version] of [2, 3, 1].entries()) {
    const link = `/ostree/boot.1/stock/${'b'.repeat(64)}/${version}`;
    await symlink(`../../../deploy/stock/deploy/${COMMIT}.${version}`, path.join(sysroot, link));
    const text = `title ${version}\nversion ${version}\noptions quiet ostree=${link}\n`;
    await writeFile(path.join(directory, `ostree-${index}-stock.conf`), text);
  }
  await writeFile(path.join(directory, 'README'), 'no entry');
  expect((await listDeployments(sysroot)).map(({ id }) => id)).toEqual(
    [3, 2, 1].map((version) => `${COMMIT}.${version}`),
  );
});

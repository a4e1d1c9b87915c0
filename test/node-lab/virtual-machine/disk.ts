import { mkdir, open, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { ignoreMissing } from '../../../daemon/files/tree-entry.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { selinuxType } from '../../../daemon/os/ostree/selinux-policy.ts';
import { createNode, removeNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { cachedDisk, createDisk, diskIn } from './cached-disk.ts';

export interface DiskOptions {
  /** What is installed on it. */
  readonly image: DigestedPullspec;
  readonly source: ImageSource;
  /**
   * Kernel arguments of the first boot alone, as `ignition.firstboot` is on CoreOS. Absent: the machine is no longer a
   * new one to systemd, and has its machine id.
   */
  readonly firstBootArguments?: readonly string[];
  readonly signal: AbortSignal;
}

/** A log for people, and limits of systemd's that a machine in software emulation, beside other work, would exceed. */
export const EMULATED = [
  ...['console=ttyS0', 'TERM=dumb', 'systemd.show_status=yes'],
  'systemd.default_timeout_start_sec=900',
];
/**
 * The option of the root's mount is systemd's own (systemd.mount(5)): the initramfs may take minutes until udev shows
 * the disk.
 */
export const KERNEL_ARGUMENTS = [
  ...['root=LABEL=root', 'rw', ...EMULATED],
  'rootflags=x-systemd.device-timeout=900',
];
const KIB = 1024;
const SECTOR = 512;
const COMMAND_MS = 300_000;
/** Two partitions, as most hosts have it: the bootloader's, which is mounted at /boot, and the root. In KiB. */
const BOOT = { start: 1024, size: 512 * KIB };
const ROOT = { start: BOOT.start + BOOT.size, size: 4096 * KIB };
/** Everything in the first part of the disk that a BIOS boots from. Of the packages syslinux-common and extlinux. */
export const BOOT_CODE = '/usr/lib/syslinux/mbr/mbr.bin';
/** Its partition table begins here. */
const BOOT_CODE_BYTES = 440;

/**
 * Installs an image on a disk, as an installer would: partitions, a bootloader (extlinux) and one deployment of ostree,
 * which writes the bootloader's configuration then and on each later update. Nothing is done where it is there.
 *
 * @returns the raw disk, which is not to be written to. @throws OsCommandError, and what installing the image throws.
 */
export function ensureDisk({ image, source, firstBootArguments, signal }: DiskOptions): Promise<string> {
  return cachedDisk([image, KERNEL_ARGUMENTS, BOOT, ROOT, firstBootArguments], async (directory) => {
    const node = path.join(directory, 'node');
    try {
      const { sysroot } = directoryNodeLayout(node);
      await prepareBoot(path.join(sysroot, 'boot'));
      await createNode({
        dir: node,
        name: 'lab',
        kernelArguments: KERNEL_ARGUMENTS,
        bootloader: 'auto',
        image,
        source,
        signal,
      });
      if (firstBootArguments !== undefined) await makeNew(sysroot, firstBootArguments);
      await labelInstalled(sysroot, signal);
      await writeDisk(diskIn(directory), node, signal);
    } finally {
      await removeNode(node);
    }
  });
}

/** ostree takes syslinux for the bootloader where this link is, and wants a configuration to be there to change. */
async function prepareBoot(boot: string): Promise<void> {
  await mkdir(path.join(boot, 'syslinux'), { recursive: true });
  await mkdir(path.join(boot, 'loader.0'));
  await symlink('loader.0', path.join(boot, 'loader'));
  await writeFile(path.join(boot, 'loader/syslinux.cfg'), 'TIMEOUT 1\n');
  await symlink('../loader/syslinux.cfg', path.join(boot, 'syslinux/syslinux.cfg'));
}

/**
 * ostree writes the bootloader's configuration anew with each deployment, from entries that don't have these arguments.
 */
async function makeNew(sysroot: string, firstBootArguments: readonly string[]): Promise<void> {
  const configuration = path.join(sysroot, 'boot/loader/syslinux.cfg');
  const text = await readFile(configuration, 'utf8');
  await writeFile(configuration, text.replace(/^(\tAPPEND .*)$/gm, `$1 ${firstBootArguments.join(' ')}`));
  for (const { directory } of await listDeployments(sysroot)) {
    // machine-id(5), "First Boot Semantics".
    await writeFile(path.join(directory, 'etc/machine-id'), 'uninitialized\n');
  }
}

/**
 * Where no SELinux runs, ostree labels neither a directory of a deployment's /etc nor what is around the deployment,
 * and a kernel that enforces a policy lets hardly any service read them. An installer labels what it has installed;
 * here it is what an image with a policy needs.
 */
async function labelInstalled(sysroot: string, signal: AbortSignal): Promise<void> {
  const run = osCommandRunner();
  const limits = { timeoutMs: COMMAND_MS, signal };
  for (const { directory } of await listDeployments(sysroot)) {
    const config = await readFile(path.join(directory, 'etc/selinux/config'), 'utf8').catch(ignoreMissing);
    const type = selinuxType(config ?? '');
    if (type === undefined) continue;
    const contexts = path.join(directory, 'etc/selinux', type, 'contexts/files/file_contexts');
    await run(['setfiles', '-F', '-r', directory, contexts, path.join(directory, 'etc')], limits);
    // These have their labels from the commit and from ostree; objects of the repository, and kernels, are the
    // deployment's files.
    const others = ['ostree/repo', 'boot'].map((name) => path.join(sysroot, name));
    const excluded = [directory, path.join(directory, '../../var'), ...others].flatMap((place) => [
      '-e',
      place,
    ]);
    await run(['setfiles', '-F', '-r', sysroot, ...excluded, contexts, sysroot], limits);
  }
}

/**
 * Writes the disk of a machine that is installed in a directory, with extlinux: /boot/syslinux leads to the
 * configuration.
 *
 * @param node the machine's directory, whose /boot is moved out of the way of the partition. @throws OsCommandError
 */
export async function writeDisk(file: string, node: string, signal: AbortSignal): Promise<void> {
  const { sysroot } = directoryNodeLayout(node);
  const boot = path.join(node, 'boot');
  await rename(path.join(sysroot, 'boot'), boot);
  await mkdir(path.join(sysroot, 'boot'));
  await createDisk(file, (ROOT.start + ROOT.size) * KIB);
  const run = osCommandRunner();
  const inSectors = (kib: number) => (kib * KIB) / SECTOR;
  const partitions = [
    'label: dos',
    `start=${inSectors(BOOT.start)}, size=${inSectors(BOOT.size)}, type=83, bootable`,
    `start=${inSectors(ROOT.start)}, size=${inSectors(ROOT.size)}, type=83`,
  ];
  const limits = { timeoutMs: COMMAND_MS, signal };
  await run(['sfdisk', '--quiet', file], { ...limits, input: `${partitions.join('\n')}\n` });
  const format = (type: string, label: string, tree: string, { start, size }: typeof BOOT) =>
    run(
      [
        ...([`mkfs.${type}`, '-q', '-L', label, '-d', tree, '-E', `offset=${start * KIB}`] as const),
        ...[file, `${size}k`],
      ],
      limits,
    );
  // What extlinux reads has to be what it knows: ext2 and no more.
  await format('ext2', 'boot', boot, BOOT);
  await format('ext4', 'root', sysroot, ROOT);
  await installBootloader(file, run, limits);
}

async function installBootloader(
  file: string,
  run: ReturnType<typeof osCommandRunner>,
  limits: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const mount = `mount -o loop,offset=${BOOT.start * KIB},sizelimit=${BOOT.size * KIB} "$0" "$1"`;
  const mountPoint = `${file}.boot`;
  await mkdir(mountPoint);
  try {
    // In mounts of its own, which end with it however it ends.
    const script = `${mount} && extlinux --install "$1/syslinux" && umount "$1"`;
    await run(['unshare', '--mount', 'sh', '-c', script, file, mountPoint], limits);
  } finally {
    await rm(mountPoint, { recursive: true, force: true });
  }
  const code = await readFile(BOOT_CODE);
  const handle = await open(file, 'r+');
  try {
    await handle.write(code.subarray(0, BOOT_CODE_BYTES), 0, Math.min(code.length, BOOT_CODE_BYTES), 0);
  } finally {
    await handle.close();
  }
}

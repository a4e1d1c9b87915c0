import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { present } from '../../api/present.ts';
import { systemdNode } from '../../daemon/host/systemd-node.ts';
import {
  listDeployments,
  OSTREE_ARGUMENT,
  parseBootloaderEntry,
} from '../../daemon/os/ostree/deployments.ts';
import type { ImageSource } from '../../daemon/os/ostree/image-source.ts';
import { CACHE } from '../../workshop/sandbox/layout.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import {
  bootMachine,
  type MachineOptions,
  type SystemdMachine,
} from '../../workshop/sandbox/systemd-node/machine.ts';
import type { BootedNode } from '../../workshop/sandbox/systemd-node/node.ts';
import type { RootfsRecipe } from '../../workshop/sandbox/systemd-node/rootfs.ts';
import {
  ensureRootfsArchive,
  type RootfsArchive,
} from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { deadline } from '../fixtures/patience.ts';
import { everyCase } from '../fixtures/sample.ts';
import { FIRST_TIME_MS, noLab } from './lab.ts';
import type { LabSystem } from './lab-node.ts';

/** Why no root can be prepared here; nothing when one can. */
export const noPreparedRoot: string | undefined =
  noLab ??
  (/\berofs$/m.test(readFileSync('/proc/filesystems', 'utf8'))
    ? undefined
    : 'composefs needs a kernel with erofs (modprobe erofs)');

/** The same for tests that build a root file system of the coming release where nobody has asked for them. */
export const noComingDebian: string | undefined = everyCase
  ? noPreparedRoot
  : 'Debian’s coming release takes minutes to build: make soak builds it';

/** The release with ostree's soft reboot, and systemd's. */
export const COMING_RECIPE: RootfsRecipe = {
  suite: 'forky',
  // What lists the packages of a release that isn't out yet is valid for a week, and not every mirror is that fresh.
  aptOptions: ['Acquire::Check-Valid-Until "false"'],
  packages: ['systemd', 'systemd-sysv', 'dbus', 'ostree', 'ostree-boot', 'procps'],
  hooks: ['--customize-hook=rm -rf "$1"/usr/share/perl "$1"/usr/lib/*/perl "$1"/usr/lib/*/gconv'],
};

/**
 * @param recipe of its packages. @returns Debian's coming release with systemd and ostree, as the layer of an image.
 */
export function comingArchive(recipe = COMING_RECIPE): Promise<RootfsArchive> {
  return ensureRootfsArchive(
    CACHE,
    deadline(FIRST_TIME_MS),
    () =>
      process.stderr.write(
        'building a root file system of Debian’s coming release; this takes minutes, once\n',
      ),
    recipe,
  );
}

/**
 * An initramfs of the deployment's own files, as dracut would have made it: ostree-prepare-root reads there how the
 * root is set up, and makes it in its place. $1: where the initramfs is, $2: the physical root, $3: the deployment's
 * /usr, $4: the kernel's command line; then what goes on with the root.
 */
const INITRAMFS = `set -e
mount -t tmpfs -o mode=755 initramfs "$1"
cd "$1"
mkdir usr proc run dev etc sys sysroot
for name in bin lib lib64 sbin; do ln -s "usr/$name" "$name"; done
mount --bind -o ro "$3" usr
mount -t proc proc proc
mount --bind /dev dev
printf '%s\\n' "$4" > run/cmdline
mount --bind run/cmdline proc/cmdline
mount --bind "$2" sysroot
chroot . /usr/lib/ostree/ostree-prepare-root /sysroot
cd /
shift 4
# systemd 258 and later know no other hierarchy.
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
exec "$@"`;

/** The initramfs hands /run on to the root, and systemd in a container takes its arguments for the kernel's. */
const INIT = `cp -a /run/initramfs/ostree* /run/
mount --bind /run/initramfs/cmdline /proc/cmdline
exec /usr/lib/systemd/systemd $(cat /proc/cmdline)`;

/**
 * Boots what the node's bootloader has first, by ostree's own part of an initramfs: with composefs where the image asks
 * for it and the deployment has one.
 *
 * @param dir of a node that was installed. @param source where its images come from. @param options as of bootMachine.
 * @returns the machine, and what a daemon acts on it by; /sysroot can be written to, as among the mounts of a daemon's
 *   pod.
 */
export async function bootPreparedRoot(
  dir: string,
  source: ImageSource,
  signal: AbortSignal,
  {
    network = 'none',
    bootMs,
    nspawnArguments = [],
  }: Partial<Pick<MachineOptions, 'network' | 'bootMs' | 'nspawnArguments'>> = {},
): Promise<BootedNode> {
  const { sysroot } = directoryNodeLayout(dir);
  const [first] = await listDeployments(sysroot);
  if (first === undefined) throw new Error(`${sysroot}: no deployment to boot; the node was not created`);
  const initramfs = path.join(dir, 'initramfs');
  await mkdir(initramfs, { recursive: true });
  const commandLine = await kernelCommandLine(sysroot);
  const machine = await bootMachine({
    root: path.join(initramfs, 'sysroot'),
    initramfs: [
      'sh',
      '-c',
      INITRAMFS,
      'sh',
      initramfs,
      sysroot,
      path.join(first.directory, 'usr'),
      commandLine,
    ],
    init: ['sh', '-c', INIT],
    nspawnArguments: [`--bind-ro=${path.join(initramfs, 'run')}:/run/initramfs`, ...nspawnArguments],
    network,
    consoleFile: path.join(dir, 'console'),
    ...present({ bootMs }),
    signal,
  });
  await makeSysrootWritable(machine, signal);
  const { root, leader } = machine;
  return {
    machine,
    ...systemdNode({ root, source, init: leader, pullSecretFile: '/var/lib/kubelet/config.json' }),
  };
}

/** The command line that a bootloader would take: that of the entry that is first in the boot order. */
export async function kernelCommandLine(sysroot: string): Promise<string> {
  const directory = path.join(sysroot, 'boot/loader/entries');
  const found = [];
  for (const name of await readdir(directory)) {
    const entry = parseBootloaderEntry(name, await readFile(path.join(directory, name), 'utf8'));
    if (entry !== undefined) found.push(entry);
  }
  const [first] = found.toSorted((a, b) => b.version - a.version);
  if (first === undefined) throw new Error(`${directory}: expected an entry of ostree's`);
  return [...first.kernelArguments, `${OSTREE_ARGUMENT}${first.deploymentLink}`].join(' ');
}

/** The daemon of these machines runs outside of their mounts and can't remount what is among them. */
async function makeSysrootWritable(machine: SystemdMachine, signal: AbortSignal): Promise<void> {
  await machine.run(['mount', '-o', 'remount,bind,rw', '/sysroot'], { timeoutMs: COMMAND_MS, signal });
}

const COMMAND_MS = 30_000;
const POLL_MS = 50;

/**
 * Waits for a soft reboot: the machine's first process stays, and has another root.
 *
 * @returns once systemd has started again what it starts at boot; false when the machine has ended instead.
 */
async function untilSoftBoot(machine: SystemdMachine): Promise<boolean> {
  const ended = new AbortController();
  void machine.off.then(() => ended.abort());
  const first = await rootDevice(machine).catch(() => undefined);
  while (!ended.signal.aborted) {
    const device = await rootDevice(machine).catch(() => first);
    if (device !== first && (await isUp(machine))) {
      await makeSysrootWritable(machine, deadline(COMMAND_MS));
      return true;
    }
    await delay(POLL_MS);
  }
  return false;
}

/** @returns the device of a machine's running root: each composefs is a mount of its own. */
async function rootDevice({ root }: SystemdMachine): Promise<bigint> {
  return (await stat(`${root}/`, { bigint: true })).dev;
}

/** A systemd that has just been started again doesn't answer yet. */
async function isUp({ run }: SystemdMachine): Promise<boolean> {
  const state = ['systemctl', 'show', '--property=SystemState', '--value'] as const;
  const shown = await run([...state], { timeoutMs: COMMAND_MS, signal: deadline(COMMAND_MS) }).catch(
    () => '',
  );
  return /^(running|degraded)$/m.test(shown);
}

/**
 * What machines with such roots have in common. A container has no loop devices for a composefs to be mounted by, and
 * Linux mounts erofs straight from files of a disk's file system alone, not of a tmpfs (fs/erofs/super.c,
 * erofs_fc_get_tree).
 */
export const PREPARED_ROOT: Pick<LabSystem, 'directory' | 'softBoot'> = {
  directory: '/var/tmp',
  softBoot: ({ machine }) => untilSoftBoot(machine),
};

/** Debian's coming release, with ostree's own part of an initramfs. */
export const COMING_DEBIAN: LabSystem = {
  ...PREPARED_ROOT,
  archive: () => comingArchive(),
  boot: (dir, source, signal, bootMs) => bootPreparedRoot(dir, source, signal, present({ bootMs })),
};

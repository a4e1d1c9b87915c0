import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { type BootedNode, bootSystemdNode } from '../../workshop/sandbox/systemd-node/node.ts';
import { deadline } from '../fixtures/patience.ts';
import { kernelCommandLine } from '../node-lab/prepared-root.ts';
import { NSPAWN_NETWORK } from './lab-network.ts';

const BOOT_MS = 120_000;
const CGROUPS = '/sys/fs/cgroup';

/** A machine with a kubelet. It boots again whenever it has ended by a reboot, as a machine does. */
export interface LabMachine extends AsyncDisposable {
  readonly name: string;
  /** The present boot. */
  readonly node: BootedNode;
  readonly boots: number;
  /** Runs a shell's command line on the machine and returns what it printed, without the last line's end. */
  sh(line: string, limitMs?: number): Promise<string>;
  /** Rejects when a boot failed; resolves when the machine was disposed of. */
  readonly ended: Promise<void>;
}

export interface LabMachineOptions {
  /** Of a node that was installed. */
  readonly dir: string;
  readonly name: string;
  /** Seen by the machine as /run/lab. */
  readonly shared: string;
}

/** Files of its own in /etc, which an installer would have written. @param files text by path. */
export async function configureMachine(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  const { sysroot } = directoryNodeLayout(dir);
  for (const { directory } of await listDeployments(sysroot)) {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(directory, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }
}

/** Boots a machine. @returns it once its systemd has started what it starts at boot. */
export async function startLabMachine(options: LabMachineOptions): Promise<LabMachine> {
  const cgroup = `shale-lab-${process.pid}-${options.name}`;
  const boot = () => bootOnce(options, cgroup);
  let node = await boot().catch(async (error: unknown) => {
    await removeCgroups(cgroup);
    throw error;
  });
  let boots = 1;
  let ending = false;
  const ended = (async () => {
    while ((await node.machine.off) === 'rebooting' && !ending) {
      await removeCgroups(cgroup);
      node = await boot();
      boots += 1;
    }
    if (!ending) throw new Error(`${options.name} has powered off`);
  })();
  ended.catch(() => undefined);
  return {
    name: options.name,
    get node() {
      return node;
    },
    get boots() {
      return boots;
    },
    sh: async (line, limitMs = 30_000) => {
      const run = { timeoutMs: limitMs, signal: deadline(limitMs) };
      return (await node.machine.run(['sh', '-c', line], run)).trim();
    },
    ended,
    [Symbol.asyncDispose]: async () => {
      ending = true;
      await node.machine.kill();
      await ended.catch(() => undefined);
      await removeCgroups(cgroup);
    },
  };
}

/**
 * A branch of the machine's own in each hierarchy of cgroups, which its kubelet takes for all there is. Of
 * systemd-nspawn's variables: pods have a network of their own, so its settings are written to.
 */
const IN_OWN_CGROUPS = `set -e
for procs in ${CGROUPS}/cgroup.procs ${CGROUPS}/*/cgroup.procs; do
  [ -e "$procs" ] || continue
  own="\${procs%/cgroup.procs}/$1"
  mkdir -p "$own"
  for name in cpuset.cpus cpuset.mems; do
    if [ -e "\${procs%/cgroup.procs}/$name" ]; then cat "\${procs%/cgroup.procs}/$name" > "$own/$name"; fi
  done
  if [ -e "$own/cgroup.clone_children" ]; then echo 1 > "$own/cgroup.clone_children"; fi
  echo 0 > "$own/cgroup.procs"
done
shift
export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
exec "$@"`;

/**
 * Settings of the whole kernel, which is that of the machine that the test runs on: a kubelet that sees them as it
 * wants them leaves them alone (k8s.io/kubernetes, pkg/kubelet/cm, setupKernelTunables).
 */
const SEEN_BY_KUBELET = { 'kernel/panic': 10, 'kernel/panic_on_oops': 1, 'vm/overcommit_memory': 1 } as const;

/**
 * Mounted over the kernel's files, before systemd starts; the command line is what the bootloader would have handed to
 * it.
 */
const INIT = [
  'mount --bind /run/boot/cmdline /proc/cmdline',
  ...Object.keys(SEEN_BY_KUBELET).map((name) => `mount --bind /run/boot/${name} /proc/sys/${name}`),
  'exec /usr/lib/systemd/systemd',
].join(' && ');

async function writeSeen(directory: string, seen: Readonly<Record<string, string | number>>): Promise<void> {
  for (const [name, value] of Object.entries(seen)) {
    const file = path.join(directory, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, `${value}\n`);
  }
}

async function bootOnce({ dir, shared }: LabMachineOptions, cgroup: string): Promise<BootedNode> {
  const seen = path.join(dir, 'seen');
  await writeSeen(seen, {
    ...SEEN_BY_KUBELET,
    cmdline: await kernelCommandLine(directoryNodeLayout(dir).sysroot),
  });
  // Its images come from where its daemon says.
  return bootSystemdNode(dir, memorySource(new Map()), deadline(BOOT_MS), {
    initramfs: ['sh', '-c', IN_OWN_CGROUPS, 'sh', cgroup],
    init: ['sh', '-c', INIT],
    network: 'given',
    nspawnArguments: [
      // Its end of the network's cable is called by it, and deployments of the same image have one name.
      `--machine=${cgroup}`,
      ...NSPAWN_NETWORK,
      '--capability=all',
      '--system-call-filter=add_key keyctl bpf',
      '--bind=/dev/kmsg',
      `--bind-ro=${shared}:/run/lab`,
      `--bind-ro=${seen}:/run/boot`,
    ],
    bootMs: BOOT_MS,
  });
}

/** Removes what a boot has left; nothing runs in it any more. */
async function removeCgroups(name: string): Promise<void> {
  const hierarchies = [CGROUPS, ...(await readdir(CGROUPS)).map((each) => path.join(CGROUPS, each))];
  for (const hierarchy of hierarchies) await removeBranch(path.join(hierarchy, name));
}

async function removeBranch(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return;
  for (const entry of entries) if (entry.isDirectory()) await removeBranch(path.join(directory, entry.name));
  await rmdir(directory);
}

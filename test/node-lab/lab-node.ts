import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pino from 'pino';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ImageSource } from '../../daemon/os/ostree/image-source.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { type ImageContent, pushImage } from '../../workshop/sandbox/registry.ts';
import { type BootedNode, bootSystemdNode } from '../../workshop/sandbox/systemd-node/node.ts';
import type { RootfsArchive } from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { keepLogFile } from '../fixtures/kept-logs.ts';
import { NODE, type NodeControlPlane, startNodeControlPlane } from '../fixtures/node-control-plane.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { labArchive } from './lab.ts';
import { type DeathPoint, killDaemon, startDaemon } from './lab-daemon.ts';
import type { UpdatedMachine } from './lab-updates.ts';

const COMMAND_MS = 30_000;
/** Of everything that the lab does before a daemon has to do with it. */
const SETUP_MS = 300_000;
/** Of one update with two reboots: some seconds, and far more where others are at work. */
export const UPDATE_MS = 180_000;
/** For one action, and for health checks: as many seconds as a machine under load needs for a restart, too. */
export const ACTION_LIMIT_S = Math.ceil(patience(4_000) / 1_000);

/**
 * A machine with systemd and a real ostree sysroot, the daemon as it ships in a process of its own, a registry, and a
 * control plane. The machine really reboots; then its daemon, which a DaemonSet would have started, is started again.
 */
export interface LabNode extends NodeControlPlane, UpdatedMachine {
  /** The present boot. */
  readonly node: BootedNode;
  /** Runs a shell's command line on the machine and returns what it printed, without the last line's end. */
  sh(line: string): Promise<string>;
  /** Kills the daemon without notice, and starts it again. */
  killDaemon(): Promise<void>;
  /** How many daemons have killed themselves. */
  readonly deaths: number;
  /** @returns the log of all its daemons. */
  log(): Promise<string>;
}

/** A machine that is to be installed. */
export interface NodeToInstall {
  readonly dir: string;
  readonly image: DigestedPullspec;
  readonly archive: RootfsArchive;
  /** Content of an auth file, for a registry that asks for a password. */
  readonly authFile?: string;
  /** Where the installer reaches the image's registry; by its own name unless given. */
  readonly registry?: string;
  readonly signal: AbortSignal;
}

/** What a machine is made of, and how it boots. */
export interface LabSystem {
  /** Where its machines lie; among the temporary files unless given. */
  readonly directory?: string;
  archive(): Promise<RootfsArchive>;
  /** What every image of it has. @param registry its host. */
  entries?(registry: string): ImageContent['entries'];
  /** Whether its images are to be as bootc takes them. */
  readonly bootable?: boolean;
  /** ostree alone installs it unless given. */
  install?(node: NodeToInstall): Promise<void>;
  /** @param limitMs for a boot that does more than to boot. */
  boot(dir: string, source: ImageSource, signal: AbortSignal, limitMs?: number): Promise<BootedNode>;
  /** Waits for one soft reboot. @returns false when the machine has ended instead. */
  softBoot(node: BootedNode): Promise<boolean>;
}

export const DEBIAN_12: LabSystem = {
  archive: labArchive,
  boot: (dir, source, signal, bootMs) => bootSystemdNode(dir, source, signal, present({ bootMs })),
  softBoot: async () => false,
};

export interface LabNodeOptions {
  /** Debian 12, whose root is its deployment's directory, unless given. */
  readonly system?: LabSystem;
  /** More arguments of its daemons. */
  readonly daemonArguments?: readonly string[];
  /** Asked at each start of a daemon: where it kills itself. One that has is started again, as the kubelet would. */
  readonly deathOf?: () => DeathPoint | undefined;
  /** Whether a boot comes to a daemon, which the kubelet would have started; every one does unless given. */
  readonly startsDaemon?: (node: BootedNode) => Promise<boolean>;
}

/** @param stock what the machine comes with, above Debian. */
export async function startLabNode(
  stock: ImageContent['entries'],
  {
    system = DEBIAN_12,
    daemonArguments = [],
    startsDaemon = async () => true,
    deathOf = () => undefined,
  }: LabNodeOptions = {},
): Promise<LabNode> {
  const archive = await system.archive();
  const base = await mkdtemp(path.join(system.directory ?? tmpdir(), 'shale-lab-'));
  const [dir, registryDir] = [path.join(base, 'node'), path.join(base, 'registry')];
  for (const each of [dir, registryDir]) await mkdir(each);
  const setup = deadline(SETUP_MS);
  const registry = await startDockerRegistry({ dir: registryDir, launcher: DIE_WITH_PARENT });
  const plainHttp = new Set([registry.host]);
  const parts = { host: registry.host, client: createRegistryClient({ plainHttp }) };
  const between = system.entries?.(registry.host);
  const below = { onto: archive, ...present({ between, bootable: system.bootable }) };
  const push: LabNode['push'] = (content) =>
    pushImage(parts, 'os/lab', { ...content, ...below }, deadline(SETUP_MS));
  const image = await push({ entries: stock });
  const source = registrySource({ root: dir, plainHttp });
  if (system.install === undefined) await createNode({ dir, name: 'lab', image, source, signal: setup });
  else await system.install({ dir, image, archive, signal: setup });
  const control = await startNodeControlPlane(pino({ level: 'silent' }), UPDATE_MS);
  const kubeconfig = path.join(base, 'kubeconfig');
  await writeFile(kubeconfig, control.kubeconfig());
  const logFile = path.join(base, 'daemon.log');
  // There are tests that start no daemon.
  await writeFile(logFile, '');
  keepLogFile('the daemon', logFile);

  const boot = () => system.boot(dir, source, deadline(SETUP_MS));
  const startProcess = (booted: BootedNode) => {
    const { machine } = booted;
    const args = [
      ...['--node-name', NODE, '--kubeconfig', kubeconfig, '--insecure-registry', registry.host],
      ...['--host-root', machine.root, '--host-init', String(machine.leader)],
      ...['--action-limit', String(ACTION_LIMIT_S), '--health-check-limit', String(ACTION_LIMIT_S)],
      ...['--log-level', 'debug'],
      ...daemonArguments,
    ];
    const started = startDaemon(logFile, args, deathOf());
    started.once('exit', (_code, signal) => {
      if (signal !== 'SIGKILL' || daemon !== started || ending) return;
      deaths += 1;
      daemon = startProcess(booted);
    });
    return started;
  };
  const startIn = async (booted: BootedNode) =>
    (await startsDaemon(booted)) ? startProcess(booted) : undefined;
  let ending = false;
  let deaths = 0;
  let daemon: ChildProcess | undefined;
  /** The one that runs is no longer the one that is started again. */
  const end = async () => {
    const ended = daemon;
    daemon = undefined;
    await killDaemon(ended);
  };
  let node = await boot();
  daemon = await startIn(node);
  // A daemon ends with the userspace that it runs in.
  const power = (async () => {
    for (;;) {
      while (await system.softBoot(node)) {
        await end();
        daemon = await startIn(node);
      }
      if ((await node.machine.off) !== 'rebooting' || ending) return;
      await end();
      node = await boot();
      daemon = await startIn(node);
    }
  })();
  power.catch(() => undefined);
  return {
    ...control,
    stock: image,
    registry: parts.client,
    push,
    get node() {
      return node;
    },
    get deaths() {
      return deaths;
    },
    sh: async (line) => {
      const signal = deadline(COMMAND_MS);
      return (await node.machine.run(['sh', '-c', line], { timeoutMs: COMMAND_MS, signal })).trim();
    },
    killDaemon: async () => {
      await end();
      daemon = startProcess(node);
    },
    log: () => readFile(logFile, 'utf8'),
    [Symbol.asyncDispose]: async () => {
      ending = true;
      await end();
      await node.machine.kill();
      try {
        await power;
      } finally {
        await control[Symbol.asyncDispose]();
        await registry.stop();
        await removeNode(dir);
        await rm(base, { recursive: true, force: true });
      }
    },
  };
}

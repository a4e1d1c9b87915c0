import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DIE_WITH_PARENT } from '@shale/apiserver/control-plane/child-process.ts';
import { shellObstacle } from '../node/stock-image.ts';

/** A container engine of the sandbox's own: its storage, its socket, and nothing of the machine's. */
export interface StartedEngine {
  /** For `--engine`. */
  readonly url: string;
  /** Of the process that all of the engine's descend from. */
  readonly pid: number;
  /** Ends it with all that it runs, and deletes its storage. */
  stop(): Promise<void>;
}

export interface StartEngineOptions {
  readonly kind: 'podman' | 'docker';
  /** Its storage; created if it doesn't exist, and deleted at the end. */
  readonly dir: string;
  /** Docker only: builds by BuildKit. */
  readonly buildKit?: boolean;
  /** Its own, where it is left alone and reaches nobody; the machine's, to pull and push by itself. */
  readonly network?: 'own' | 'host';
}

const READY_MS = 20_000;
const PROGRAMS = { podman: 'podman', docker: 'dockerd' } as const;
const SEARCHED = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`.split(':');

/** @returns why an engine can't run on this machine; undefined when it can. */
export function engineObstacle(kind: StartEngineOptions['kind']): string | undefined {
  if (process.getuid?.() !== 0) return `${kind} needs root here`;
  if (find(PROGRAMS[kind]) === undefined) {
    return `${PROGRAMS[kind]} is not installed (package ${kind === 'podman' ? 'podman' : 'docker.io'})`;
  }
  if (kind === 'podman' && runtime() === undefined) return 'podman needs runc or crun';
  return undefined;
}

/**
 * Starts an engine on a socket of its own.
 *
 * @throws Error with what it printed, when it is not ready in time.
 */
export async function startEngine({
  kind,
  dir,
  buildKit = false,
  network = 'own',
}: StartEngineOptions): Promise<StartedEngine> {
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'daemon.json'), JSON.stringify({ features: { buildkit: buildKit } }));
  // A socket's path has at most 107 bytes (unix(7)); the storage may lie deeper than that.
  const run = await mkdtemp(path.join(tmpdir(), 'shale-engine-'));
  const socket = path.join(run, 'engine.sock');
  const args = kind === 'podman' ? podman(dir, socket) : docker(dir, socket, network);
  const [command = '', ...rest] = [
    ...DIE_WITH_PARENT,
    ...namespaces(network),
    find(PROGRAMS[kind]) ?? PROGRAMS[kind],
    ...args,
  ];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = tailOf(child);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = async () => {
    // unshare does not pass SIGTERM on; nothing of the engine's is kept, so nothing needs an orderly end.
    child.kill('SIGKILL');
    await exited;
    await rm(dir, { recursive: true, force: true, maxRetries: 20 });
    await rm(run, { recursive: true, force: true });
  };
  try {
    await ready(socket, child);
  } catch (error) {
    await stop();
    throw new Error(`${kind} did not start: ${printed()}`, { cause: error });
  }
  return { url: `unix://${socket}`, pid: child.pid ?? 0, stop };
}

/**
 * What an engine started, and what it mounted, ends with it; a bridge that it makes is of a network that nobody else
 * sees.
 */
function namespaces(network: 'own' | 'host'): string[] {
  const net = network === 'own' ? ['--net'] : [];
  return ['unshare', ...net, '--pid', '--mount', '--fork', '--kill-child', '--mount-proc', '--'];
}

function podman(dir: string, socket: string): string[] {
  return [...podmanOptions(dir), 'system', 'service', '--time', '0', `unix://${socket}`];
}

/** @returns what has Podman keep everything in a directory, and run containers on this machine. */
function podmanOptions(dir: string): string[] {
  const storage = ['--root', path.join(dir, 'root'), '--runroot', path.join(dir, 'run')];
  return [
    ...storage,
    ...['--cgroup-manager', 'cgroupfs', '--runtime', runtime() ?? 'crun', '--events-backend', 'file'],
  ];
}

/**
 * Podman without a service, which reads the context of a build where it lies; with one, its client compresses the
 * context first.
 *
 * @param dir its storage. @returns the words before a command of it, which has no network and whose mounts end with it.
 */
export function podmanAlone(dir: string): readonly [string, ...string[]] {
  return [
    'unshare',
    '--net',
    '--mount',
    '--',
    find(PROGRAMS.podman) ?? PROGRAMS.podman,
    ...podmanOptions(dir),
  ];
}

function docker(dir: string, socket: string, network: 'own' | 'host'): string[] {
  const bridge = network === 'own' ? ['--bip', '172.31.253.1/24'] : ['--bridge', 'none'];
  return [
    ...['--data-root', path.join(dir, 'root'), '--exec-root', path.join(dir, 'exec')],
    ...[
      '--pidfile',
      path.join(dir, 'pid'),
      '--host',
      `unix://${socket}`,
      '--config-file',
      path.join(dir, 'daemon.json'),
    ],
    ...['--iptables=false', '--ip-masq=false', ...bridge],
  ];
}

/** crun refuses cgroups of both versions at once, as some machines have them. */
function runtime(): string | undefined {
  return find('runc') ?? find('crun');
}

function find(program: string): string | undefined {
  return SEARCHED.map((dir) => path.join(dir, program)).find((file) => existsSync(file));
}

async function ready(socket: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + READY_MS;
  while (!(await answers(socket))) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    if (performance.now() > deadline) throw new Error(`no answer within ${READY_MS} ms`);
    await delay(50);
  }
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ socketPath, path: '/_ping', timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}

function tailOf(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = `${text}${chunk}`.slice(-2_000);
    });
  }
  return () => text.trim();
}

/** What runs in the pods of a sandbox's builds, or why nothing does. */
export type ClusterEngine = { readonly kind: 'podman' } | { readonly missing: string };

/** What a container with Podman needs beyond Podman (run-container.ts), and the packages. */
const CONTAINER_PROGRAMS = { runc: 'runc', newuidmap: 'uidmap', setcap: 'libcap2-bin' } as const;

/**
 * @returns whether this machine can run Podman in containers. A sandbox is complete but for images that need commands.
 */
export function clusterEngine(): ClusterEngine {
  const missing = Object.entries(CONTAINER_PROGRAMS)
    .filter(([program]) => find(program) === undefined)
    .map(([program, name]) => `${program} is not installed (package ${name})`);
  const why = [shellObstacle(), engineObstacle('podman'), ...missing].filter((each) => each !== undefined);
  return why.length === 0 ? { kind: 'podman' } : { missing: why.join('; ') };
}

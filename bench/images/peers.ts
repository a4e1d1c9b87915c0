import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import {
  engineObstacle,
  type StartedEngine,
  startEngine,
} from '../../workshop/sandbox/engine/start-engine.ts';
import { watchMemory } from '../../workshop/sandbox/process-table.ts';

const MEMORY_EVERY_MS = 20;

export interface Measured {
  readonly seconds: number;
  /** Most that was resident at one time in the processes of the tool, its daemon among them; bytes. */
  readonly peakMemory: number;
}

/** A way to make and push an image. */
export interface Peer {
  readonly name: string;
  /** Builds from a context folder and pushes. @param cold whether nothing of an earlier build may be there. */
  build(context: string, image: string, cold: boolean): Promise<Measured>;
  stop(): Promise<void>;
}

/** @returns Docker with a daemon of its own, in the machine's network; why it can't be measured. */
export async function dockerPeer(dir: string): Promise<Peer | string> {
  const obstacle = engineObstacle('docker');
  if (obstacle !== undefined) return obstacle;
  let engine: StartedEngine | undefined;
  const fresh = async (before: StartedEngine | undefined) => {
    await before?.stop();
    return startEngine({ kind: 'docker', dir: path.join(dir, 'docker'), network: 'host' });
  };
  return {
    name: 'docker build + push',
    async build(context, image, cold) {
      if (cold || engine === undefined) engine = await fresh(engine);
      const { url, pid } = engine;
      const env = { DOCKER_BUILDKIT: '0', DOCKER_HOST: url };
      const file = path.join(context, 'Containerfile');
      return measure([pid, process.pid], async () => {
        await execa('/usr/bin/docker', ['build', '--file', file, '--tag', image, context], { env });
        await execa('/usr/bin/docker', ['push', image], { env });
      });
    },
    stop: async () => engine?.stop(),
  };
}

/** @returns buildah with storage of its own; why it can't be measured. */
export async function buildahPeer(dir: string): Promise<Peer | string> {
  const found = await execa('buildah', ['--version'], { reject: false });
  if (found.failed) return 'buildah is not installed (package buildah)';
  const storage = path.join(dir, 'buildah');
  const own = ['--root', path.join(storage, 'root'), '--runroot', path.join(storage, 'run')];
  const clear = async () => {
    await execa('umount', ['--recursive', path.join(storage, 'root/overlay')], { reject: false });
    await rm(storage, { recursive: true, force: true });
  };
  return {
    name: 'buildah bud + push',
    async build(context, image, cold) {
      if (cold) await clear();
      await mkdir(storage, { recursive: true });
      return measure([process.pid], async () => {
        const options = ['--isolation', 'chroot', '--tls-verify=false', '--layers', '--tag', image];
        await execa('buildah', [...own, 'bud', ...options, context]);
        await execa('buildah', [...own, 'push', '--tls-verify=false', image]);
      });
    },
    stop: clear,
  };
}

/** @param roots of processes that count; this one's own memory is taken off. */
export async function measure(roots: readonly number[], run: () => Promise<unknown>): Promise<Measured> {
  const own = process.memoryUsage.rss();
  const memory = watchMemory(roots, MEMORY_EVERY_MS);
  const start = performance.now();
  await run();
  const seconds = (performance.now() - start) / 1000;
  const peak = memory.stop();
  return { seconds, peakMemory: roots.includes(process.pid) ? Math.max(0, peak - own) : peak };
}

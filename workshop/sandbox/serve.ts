import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { z } from 'zod';
import { clearCluster, startCluster } from './cluster.ts';
import { type ControlPlaneChoice, startControlPlane } from './control-plane.ts';
import { type SandboxLayout, SandboxRecord, sandboxLayout, writeRecord } from './layout.ts';
import { lockSandbox } from './lock.ts';
import { type InstalledVersion, otherVersion } from './manifests/installed-version.ts';
import type { NodeKindName } from './node-kind.ts';
import { runInCheckout, runWithNode } from './programs.ts';
import { createKubelets } from './workloads/kubelets.ts';
import type { RunShale } from './workloads/pod-runner.ts';

/** What the process that holds a sandbox reports to the one that started it. */
export const ServeMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('progress'), what: z.string() }),
  z.object({ type: z.literal('ready'), record: SandboxRecord }),
  z.object({ type: z.literal('failed'), message: z.string() }),
]);
export type ServeMessage = z.infer<typeof ServeMessage>;

/** The message to that process to stay when the one that started it ends. */
export const KEEP = 'keep';

const SHALE = path.join(import.meta.dirname, '../../cli/main.ts');

export interface ServeOptions {
  readonly dir: string;
  readonly choice: ControlPlaneChoice;
  readonly nodes: NodeKindName;
  /** Root directory of another checkout of Shale, which is installed at first; absent: this one is. */
  readonly startWith?: string | undefined;
  /** Reports to the process that started this one. */
  readonly report: (message: ServeMessage) => void;
  readonly log: Logger;
  /** Aborted when the sandbox is to go down. */
  readonly signal: AbortSignal;
}

/**
 * Holds a sandbox until the signal: its API server, registry, machines and pods run in this process or as its children.
 *
 * @throws SandboxInUse; the error that prevented its start, or ended it.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const layout = sandboxLayout(options.dir);
  await mkdir(layout.dir, { recursive: true });
  const lock = await lockSandbox(layout.dir);
  try {
    await hold(layout, options);
  } finally {
    for (const file of [layout.record, layout.kubeconfig]) await rm(file, { force: true });
    lock.release();
  }
}

async function hold(
  layout: SandboxLayout,
  { choice, nodes, startWith, report, log, signal }: ServeOptions,
): Promise<void> {
  const onProgress = (what: string) => report({ type: 'progress', what });
  onProgress('Starting the API server');
  const version = startWith === undefined ? undefined : otherVersion(startWith);
  // It has to outlive the cluster, whose processes say goodbye to it.
  const kubelets = createKubelets();
  const controlPlane = await startControlPlane(
    { ...choice, auditLog: layout.auditLog, kubelets },
    new AbortController().signal,
  );
  try {
    await writeFile(layout.kubeconfig, controlPlane.kubeconfig(), { mode: 0o600 });
    const cluster = await startCluster({
      layout,
      controlPlane,
      kubelets,
      nodes,
      shale: programsOf(version),
      version,
      onProgress,
      log,
      signal,
    });
    const record: SandboxRecord = {
      pid: process.pid,
      controlPlane: controlPlane.description,
      access: controlPlane.access,
      kubeconfig: layout.kubeconfig,
      registryHost: cluster.registry.host,
      registryCA: cluster.registry.caPem,
      stockImage: cluster.stockImage,
      engine: cluster.engine,
      nodes,
    };
    await writeRecord(layout, record);
    report({ type: 'ready', record });
    await cluster.ended;
  } finally {
    await controlPlane.stop();
    await clearCluster(layout);
  }
}

/** @returns how pods run: those of the other version's image by its programs, all others by this checkout's. */
function programsOf(other: InstalledVersion | undefined): RunShale {
  return (program = SHALE, image) =>
    other !== undefined && image === other.image
      ? runInCheckout(program, other.checkout)
      : runWithNode(program);
}

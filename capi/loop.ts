import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../api/error-message.ts';
import { NotKnownNow } from './clusters/clusters.ts';
import { type KeepUpOptions, keepUp, referenceOf } from './clusters/keep-up.ts';
import type { WorkloadClusters } from './clusters/workload-clusters.ts';
import type { CapiCluster } from './contract/cluster-api-kinds.ts';
import { NotUnderstood } from './contract/not-understood.ts';
import type { MachineSettings } from './contract/settings.ts';
import type { ExtensionMetrics } from './metrics.ts';

export interface LoopOptions extends KeepUpOptions {
  readonly workloads: WorkloadClusters;
  /** Name of the extension's ExtensionConfig, which has the settings. */
  readonly extensionConfig: string;
  readonly metrics: Pick<ExtensionMetrics, 'passFailed'>;
  /** ms between two passes. */
  readonly intervalMs: number;
}

/** How often Clusters are looked at, in ms. */
export const LOOP_INTERVAL_MS = 30_000;

/** ms for one pass over one Cluster. One that doesn't answer keeps the others waiting for no longer. */
const CLUSTER_DEADLINE_MS = 20_000;

/** Clusters that are looked at at the same time. */
const LANES = 4;

/**
 * Looks at every Cluster from time to time, until the signal. Each replica does: nothing is kept from one pass to the
 * next, and a pass writes only what isn't there yet.
 */
export async function runLoop(options: LoopOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await passOver(options, signal);
    await delay(options.intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

/** One pass over all Clusters. What fails is logged, and is tried again at the next pass. */
export async function passOver(options: LoopOptions, signal: AbortSignal): Promise<void> {
  const { management, workloads, extensionConfig } = options;
  try {
    const settings = await management.settings(extensionConfig, signal);
    const clusters = await management.clusters(signal);
    workloads.keepOnly(clusters.map(referenceOf));
    const queue = [...clusters];
    const lane = async () => {
      for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift())
        await passOverCluster(options, next, settings, signal);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  } catch (error) {
    reportFailure(options, {}, error, signal);
  }
}

async function passOverCluster(
  options: LoopOptions,
  cluster: CapiCluster,
  settings: MachineSettings,
  signal: AbortSignal,
): Promise<void> {
  const reference = referenceOf(cluster);
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(CLUSTER_DEADLINE_MS)]);
  try {
    const machines = await options.management.machinesOf(reference, bounded);
    // Until it has a node there is nothing to update, and no kubeconfig either.
    if (!machines.some(({ status }) => status?.nodeRef !== undefined)) return;
    await options.workloads.use(reference, bounded, (workload) =>
      keepUp(options, { cluster, machines, workload, settings }, bounded),
    );
  } catch (error) {
    reportFailure(options, { cluster: reference }, error, signal);
  }
}

/** A cluster that is away is nothing unusual; an error of the program is logged whole. */
function reportFailure(
  { log, metrics }: LoopOptions,
  about: object,
  error: unknown,
  signal: AbortSignal,
): void {
  if (signal.aborted) return;
  metrics.passFailed();
  const isExpected = error instanceof NotKnownNow || error instanceof NotUnderstood;
  if (isExpected) log.warn({ ...about, why: errorMessage(error) }, 'a pass could not be made');
  else log.error({ ...about, err: error }, 'a pass failed');
}

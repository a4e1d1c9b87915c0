import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ConfigMaps, Deployments, Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import {
  BUILDER_DEPLOYMENT,
  OPERATOR_DEPLOYMENT,
  PAGE_DEPLOYMENT,
  SWITCH_CONFIG_MAP,
} from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { type ApiClient, isTemporary } from '../../cluster/api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { MaintenanceLookup } from '../../rollout/node-claims.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { readAll, unlessForbidden } from '../command-line/cluster-access.ts';
import { note } from '../command-line/output.ts';

/** The namespaces of objects that are not cluster-scoped. */
export interface Places {
  /** Where Shale runs. */
  readonly namespace: string;
  readonly leaseNamespace: string;
}

/** Where to look, and at what. */
interface Sight extends Places {
  /** Whether to observe MachineConfigs as well: they may be large. */
  readonly withMachineConfigs?: boolean;
}

/** Observes a cluster whenever something changes. */
export interface ClusterWatch {
  /** While the API server is unavailable, the cluster as it was last seen. */
  observe(): Promise<ObservedCluster>;
  /** Resolves soon after the next change, or after that many ms without one. @throws the signal's reason. */
  changed(withinMs: number): Promise<void>;
  /** Ends the watches. */
  close(): Promise<void>;
}

/** ms; changes come in bursts, and observing once after a burst is enough. */
const SETTLE_MS = 100;

/** Reads a kind: once, or with a watch. */
type Source = <T extends KubernetesObject>(
  kind: Kind<T>,
  where?: { readonly namespace?: string; readonly fieldSelector?: string },
) => Promise<() => readonly T[]>;

/** @returns the current state of the cluster. @throws {CommandError} when it can't be read. */
export async function observeCluster(
  client: ApiClient,
  places: Places,
  signal: AbortSignal,
): Promise<ObservedCluster> {
  const observe = await openObservation(client, places, async (kind, where) => {
    const items = await readAll(client, kind, { ...where, signal });
    return () => items;
  });
  return observe(signal);
}

/**
 * Opens a watch on each kind.
 *
 * @param signal ends the watches.
 * @throws CommandError when the cluster can't be read.
 */
export async function watchCluster(
  client: ApiClient,
  places: Sight,
  signal: AbortSignal,
): Promise<ClusterWatch> {
  const stop = new AbortController();
  const watching = AbortSignal.any([signal, stop.signal]);
  const log = await warningsOnStandardError();
  const started: Promise<void>[] = [];
  let change = Promise.withResolvers<void>();
  const close = async () => {
    stop.abort();
    await Promise.all(started);
  };
  const opened = openObservation(client, places, async (kind, where) => {
    // An informer retries for ever; a kind that can't be read at all has to be reported at once.
    await readAll(client, kind, { ...where, signal: watching });
    const informer = createInformer(client, kind, { ...where, log });
    informer.onChange(() => change.resolve());
    started.push(informer.start(watching));
    await informer.synced();
    return () => informer.list();
  });
  let observe: Awaited<typeof opened>;
  try {
    observe = await opened;
    await observe(watching);
  } catch (error) {
    await close();
    throw error;
  }
  signal.throwIfAborted();
  return {
    observe: () => observe(watching),
    async changed(withinMs) {
      const changed = new AbortController();
      const either = AbortSignal.any([watching, changed.signal]);
      void change.promise.then(() => changed.abort());
      await delay(withinMs, undefined, { signal: either }).catch(() => watching.throwIfAborted());
      await delay(SETTLE_MS, undefined, { signal: watching });
      change = Promise.withResolvers<void>();
    },
    close,
  };
}

async function openObservation(
  client: ApiClient,
  { namespace, leaseNamespace, withMachineConfigs = false }: Sight,
  open: Source,
): Promise<(signal: AbortSignal) => Promise<ObservedCluster>> {
  const maintenance = new MaintenanceLookup(client, Date.now);
  let inMaintenance: ReadonlySet<string> | undefined;
  const nodesInMaintenance = async (signal: AbortSignal): Promise<ReadonlySet<string>> => {
    try {
      inMaintenance = (await unlessForbidden(maintenance.nodes(signal))) ?? new Set();
    } catch (error) {
      // As with the other kinds, what was read last stays valid until the server responds again.
      if (inMaintenance === undefined || !isTemporary(error)) throw error;
    }
    return inMaintenance;
  };
  const [pools, machineConfigNodes, machineOSConfigs, builds, nodes, switchMaps, deployments, leases] =
    await Promise.all([
      open(MachineConfigPools),
      open(MachineConfigNodes),
      open(MachineOSConfigs),
      open(MachineOSBuilds),
      open(Nodes),
      open(ConfigMaps, { namespace, fieldSelector: `metadata.name=${SWITCH_CONFIG_MAP}` }),
      open(Deployments, { namespace }),
      unlessForbidden(open(Leases, { namespace: leaseNamespace })),
    ]);
  const configs = withMachineConfigs ? await unlessForbidden(open(MachineConfigs)) : undefined;
  const deployment = (name: string) => deployments().find(({ metadata }) => metadata.name === name);
  return async (signal) => ({
    switchMap: switchMaps()[0],
    operator: deployment(OPERATOR_DEPLOYMENT),
    builder: deployment(BUILDER_DEPLOYMENT),
    page: deployment(PAGE_DEPLOYMENT),
    pools: pools().toSorted(byName),
    machineOSConfigs: machineOSConfigs(),
    builds: builds(),
    machineConfigNodes: machineConfigNodes().toSorted(byName),
    nodes: nodes(),
    machineConfigs: configs?.(),
    leases: leases?.(),
    inMaintenance: await nodesInMaintenance(signal),
  });
}

const byName = by(({ metadata }: KubernetesObject) => metadata.name);

/** Prints why a watch failed: it is retried, and until then the user sees no progress. */
async function warningsOnStandardError(): Promise<Logger> {
  // Most commands look once, and log nothing.
  const { default: pino } = await import('pino');
  return pino(
    { level: 'warn' },
    {
      write(line: string) {
        const { kind, msg, err } = JSON.parse(line) as {
          kind?: string;
          msg: string;
          err?: { message?: string };
        };
        note(`shale: ${kind ?? ''}: ${msg}${err?.message === undefined ? '' : `: ${err.message}`}`);
      },
    },
  );
}

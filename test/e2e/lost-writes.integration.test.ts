/**
 * Each write of each process meets a server that is away: whether anything writes it later is seen only on a cluster.
 */

import { tmpdir } from 'node:os';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { outcomeOf } from '../../api/build-outcome.ts';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { engineParts } from '../../builder/engine/engine-flags.ts';
import { noEngine } from '../../builder/engine/engines.ts';
import { runBuilder } from '../../builder/loop.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startRolloutControllers } from '../../operator/loop.ts';
import { createCaches } from '../../rollout/caches.ts';
import { type Cut, CutClient, type CutKind } from '../fixtures/fleet/cut-client.ts';
import { LiveFleet } from '../fixtures/fleet/live-fleet.ts';
import { WatchedCluster } from '../fixtures/fleet/watched-cluster.ts';
import { believeBuilds } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';
import { someOptions } from '../fixtures/rollout-options.ts';
import { everyCase, samplePoints } from '../fixtures/sample.ts';

const PROCESSES = ['operator', 'builder', 'daemons'] as const;
type Process = (typeof PROCESSES)[number];
const KINDS: readonly CutKind[] = ['refused', 'unanswered'];
const POOL = 'worker';
const NODES = ['node-1', 'node-2'];
/** Longer than the first pauses of a queue's back-off, so that a write fails more than once. */
const CUT_MS = 120;
/** Cuts of each process and kind that a landing tries. */
const TRIED = 3;

const log = pino({ level: 'silent' });
const noEvents = { normal: () => undefined, warning: () => undefined };
const options = someOptions({ rendering: { delayMs: 0 }, pace: { soakSeconds: 0 } });

/** A registry with a stock image. */
async function startRegistry() {
  const registry = await MemoryRegistry.start();
  const plainHttp = new Set([registry.host]);
  const stock = `${registry.host}/os/stock`;
  const client = createRegistryClient({ plainHttp });
  const base = `${stock}@${await pushBaseImage(client, `${stock}:1`, deadline(60_000))}`;
  return { host: registry.host, plainHttp, base };
}

/** A pool with two nodes, layered from its first moment, and every process of Shale, until all of it is at its end. */
async function rollOut(
  { host, plainHttp, base }: Awaited<ReturnType<typeof startRegistry>>,
  cuts: Partial<Record<Process, Cut>> = {},
): Promise<Record<Process, number>> {
  const cluster = new WatchedCluster();
  const clients = {
    operator: new CutClient(cluster.watchingClient(), cuts.operator),
    builder: new CutClient(cluster.watchingClient(), cuts.builder),
    daemons: new CutClient(cluster.watchingClient(), cuts.daemons),
  };
  const stop = new AbortController();
  const { signal } = stop;
  const admin = new LiveFleet(cluster.watchingClient(), fleetOptions);
  const running = [
    startRolloutControllers({
      client: clients.operator.client,
      caches: createCaches(clients.operator.client, options, log),
      events: noEvents,
      log,
      options,
      proveImage: believeBuilds,
      signal,
    }),
    builderOf(clients.builder.client, plainHttp, signal),
    new LiveFleet(clients.daemons.client, fleetOptions).run(signal),
  ];
  try {
    await admin.createPool(POOL, {}, signal);
    await admin.putConfig(POOL, 'one', signal);
    cluster.put(MachineOSConfigs, {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineOSConfig',
      metadata: { name: POOL, uid: 'uid-config', generation: 1 },
      spec: {
        machineConfigPool: { name: POOL },
        baseImage: base,
        renderedImagePushSpec: `${host}/os/${POOL}:latest`,
      },
    });
    for (const name of NODES) await admin.createNode(name, POOL, {}, signal);
    await vi.waitFor(() => expect(leftToDo(cluster)).toEqual([]), {
      timeout: patience(30_000),
      interval: 10,
    });
    return {
      operator: clients.operator.writes,
      builder: clients.builder.writes,
      daemons: clients.daemons.writes,
    };
  } finally {
    stop.abort();
    await Promise.all(running);
  }
}

const fleetOptions = { log, workers: 2, scriptOf: () => ({}), onUpdate: () => undefined };

function builderOf(client: ApiClient, plainHttp: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  return runBuilder({
    client,
    events: noEvents,
    log,
    namespace: options.namespace,
    plainHttp,
    architecture: 'amd64',
    version: 'test',
    created: '1970-01-01T00:00:00Z',
    parallel: 4,
    // Nothing that wakes the builder by itself.
    baseCheckMs: 3_600_000,
    engine: engineParts({ engineMinutes: 1, engineGibibytes: 1, engineWorkDir: tmpdir() }, noEngine(), 1),
    signal,
  });
}

/** @returns what is not yet as it will be once every process has done its work. */
function leftToDo(cluster: WatchedCluster): readonly string[] {
  const pool = cluster.get(MachineConfigPools, POOL);
  const builds = cluster.list(MachineOSBuilds);
  const image = cluster.get(MachineOSConfigs, POOL)?.status?.currentImagePullSpec;
  const config = pool?.spec.configuration?.name;
  const nodes = NODES.flatMap((name) => {
    const { status } = cluster.get(MachineConfigNodes, name) ?? {};
    const isThere = status?.configVersion?.current === config && status?.configImage?.currentImage === image;
    const isFree = cluster.get(Nodes, name)?.spec?.unschedulable !== true;
    return isThere && isFree ? [] : [`node ${name}`];
  });
  return [
    ...(config === undefined ? ['rendered config'] : []),
    ...(image === undefined ? ['image of the MachineOSConfig'] : []),
    ...(builds.every((build) => outcomeOf(build) !== undefined) ? [] : ['build']),
    ...nodes,
    ...(conditionIsTrue(pool?.status?.conditions, 'Updated') ? [] : ['pool Updated']),
    ...cluster.list(Leases).map(({ metadata }) => `lease ${metadata.name}`),
  ];
}

describe('an API server that is away at a write', () => {
  test.each(PROCESSES.flatMap((process) => KINDS.map((kind) => ({ process, kind }))))(
    '$kind of $process: everything converges without another event',
    { timeout: patience(everyCase ? 600_000 : 120_000) },
    async ({ process, kind }) => {
      const registry = await startRegistry();
      const { [process]: writes } = await rollOut(registry);
      expect(writes).toBeGreaterThan(0);
      for (const point of samplePoints(`writes of ${process}, ${kind}`, writes, TRIED)) {
        const atWrite = point + 1;
        await rollOut(registry, { [process]: { kind, atWrite, lastsMs: CUT_MS } }).catch((cause: unknown) => {
          throw new Error(`cut at write ${atWrite} of about ${writes}: ${String(cause)}`, { cause });
        });
      }
    },
  );
});

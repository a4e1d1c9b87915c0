import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type ConfigMap, ConfigMaps } from '../api/kubernetes.ts';
import { type MachineConfigPool, MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient, WatchEvent, WatchOptions } from '../cluster/api-client.ts';
import { changeField } from '../cluster/events.ts';
import { createCaches } from '../rollout/caches.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { RolloutMetrics } from '../rollout/reports/metrics.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { type RolloutParts, startRolloutControllers } from './loop.ts';

type Line = Readonly<Record<string, unknown>>;

/** A cluster that is watched: each watch is told of every object again after each write. */
class WatchedCluster extends MemoryCluster {
  #written = Promise.withResolvers<void>();
  /** Lists end only once this is resolved. */
  readonly listable = Promise.withResolvers<void>();

  override onWrite = () => {
    this.#written.resolve();
    this.#written = Promise.withResolvers();
  };

  watchingClient(): ApiClient {
    const client = this.client();
    return {
      ...client,
      list: async (kind, { fieldSelector } = {}) => {
        await this.listable.promise;
        return { items: this.#selected(kind, fieldSelector), resourceVersion: '1' };
      },
      watch: (kind, options) => this.#watch(kind, options),
      patchStatus: client.patch,
    };
  }

  #selected<T extends KubernetesObject>(kind: Kind<T>, fieldSelector: string | undefined): readonly T[] {
    const name = fieldSelector?.replace('metadata.name=', '');
    return this.list(kind).filter(({ metadata }) => name === undefined || metadata.name === name);
  }

  async *#watch<T extends KubernetesObject>(
    kind: Kind<T>,
    { signal, fieldSelector }: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>> {
    let held = this.#selected(kind, fieldSelector);
    const aborted = new Promise<void>((resolve) =>
      signal?.addEventListener('abort', () => resolve(), { once: true }),
    );
    while (signal?.aborted !== true) {
      await Promise.race([this.#written.promise, aborted]);
      const now = this.#selected(kind, fieldSelector);
      for (const object of now) if (!held.includes(object)) yield { type: 'MODIFIED', object };
      for (const object of held)
        if (!now.some(({ metadata }) => metadata.name === object.metadata.name))
          yield { type: 'DELETED', object };
      held = now;
    }
  }
}

/** The controllers of the rollout, on a cluster of their own. */
function startIn(cluster: WatchedCluster, more: Partial<RolloutParts> = {}) {
  const lines: Line[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const stop = new AbortController();
  const client = cluster.watchingClient();
  const passes: string[] = [];
  const metrics = new RolloutMetrics(() => new Map());
  const observePass = vi.spyOn(metrics, 'observePass').mockImplementation((name, { outcome }) => {
    passes.push(`${name} ${outcome}`);
  });
  const setSigningDisabled = vi.spyOn(metrics, 'setSigningDisabled');
  let lengths: () => ReadonlyMap<string, number> = () => new Map();
  const onReady = vi.fn();
  const ended = startRolloutControllers({
    client,
    caches: createCaches(client, defaultRolloutOptions, log),
    events: { normal: () => undefined, warning: () => undefined },
    log,
    options: defaultRolloutOptions,
    readImageLabels: async () => [],
    signal: stop.signal,
    onReady,
    telemetry: {
      metrics,
      watch: (given) => {
        lengths = given;
      },
    },
    ...more,
  });
  ended.catch(() => undefined);
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(async () => {
    cluster.listable.resolve();
    await end();
  });
  return {
    lines,
    passes,
    end,
    stop,
    ended,
    onReady,
    observePass,
    setSigningDisabled,
    lengths: () => lengths(),
  };
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

function signingKeys(keys: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SIGNING_KEYS_CONFIG_MAP, namespace: 'shale-system' },
    data: { version: keys },
  };
}

test('work starts, and readiness is reported, once everything is read', async () => {
  const cluster = new WatchedCluster();
  const { onReady, passes, lengths } = startIn(cluster);
  await delay(20);
  expect([onReady.mock.calls.length, passes, lengths().get('policy')]).toEqual([0, [], 1]);
  cluster.listable.resolve();
  await eventually(() => expect(passes.length).toBeGreaterThan(0));
  expect(onReady).toHaveBeenCalledOnce();
});

test('an operator that stops before everything is read is never ready', async () => {
  const cluster = new WatchedCluster();
  const { onReady, stop, ended, passes } = startIn(cluster);
  stop.abort();
  cluster.listable.resolve();
  await ended;
  expect(onReady).not.toHaveBeenCalled();
  expect(passes).toEqual([]);
});

test('the policy is worked on without any event, and metrics have the queue and the passes of each controller', async () => {
  const cluster = new WatchedCluster();
  cluster.listable.resolve();
  const { passes, lengths } = startIn(cluster);
  await eventually(() => expect(passes).toContain('policy done'));
  expect([...lengths().keys()].toSorted()).toEqual([
    'annotations',
    'certificates',
    'departed',
    'policy',
    'pools',
    'rendering',
  ]);
  expect([...lengths().values()]).toEqual([0, 0, 0, 0, 0, 0]);
});

test('metrics say whether signing is disabled; deleted keys disable nothing', async () => {
  const cluster = new WatchedCluster();
  cluster.listable.resolve();
  const disabled: ConfigMap = { ...signingKeys(''), data: {} };
  cluster.put(ConfigMaps, disabled);
  const { setSigningDisabled } = startIn(cluster);
  await eventually(() => expect(setSigningDisabled).toHaveBeenLastCalledWith(true));
  cluster.put(ConfigMaps, signingKeys('a key'));
  await eventually(() => expect(setSigningDisabled).toHaveBeenLastCalledWith(false));
  cluster.put(ConfigMaps, disabled);
  await eventually(() => expect(setSigningDisabled).toHaveBeenLastCalledWith(true));
  cluster.remove(ConfigMaps, SIGNING_KEYS_CONFIG_MAP);
  await eventually(() => expect(setSigningDisabled).toHaveBeenLastCalledWith(false));
});

test('the log of a failed pass names the change that the pool is at, and only for passes over pools', async () => {
  const cluster = new WatchedCluster();
  cluster.listable.resolve();
  const pool: MachineConfigPool = aPool('worker', { configuration: { name: 'rendered-worker-1' } });
  cluster.put(MachineConfigPools, pool);
  cluster.put(MachineConfigurations, {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
    spec: {},
  });
  cluster.trouble = () => 'unavailable';
  const { lines } = startIn(cluster);
  const failed = (controller: string) =>
    lines.find((line) => line['msg'] === 'reconcile failed' && line['controller'] === controller);
  await eventually(() => {
    for (const controller of ['pools', 'rendering', 'policy']) expect(failed(controller)).toBeDefined();
  });
  const change = changeField('rendered-worker-1');
  expect(failed('pools')).toMatchObject(change);
  expect(failed('rendering')).toMatchObject(change);
  expect(failed('policy')).not.toHaveProperty('change');
});

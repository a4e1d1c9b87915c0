import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type ConfigMap, ConfigMaps } from '../api/kubernetes.ts';
import { type MachineConfigPool, MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import { changeField } from '../cluster/events.ts';
import { createCaches } from '../rollout/caches.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { RolloutMetrics } from '../rollout/reports/metrics.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { type RolloutParts, startRolloutControllers } from './loop.ts';

type Line = Readonly<Record<string, unknown>>;

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
    cluster.releaseLists();
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
  cluster.holdLists();
  const { onReady, passes, lengths } = startIn(cluster);
  await delay(20);
  expect([onReady.mock.calls.length, passes, lengths().get('policy')]).toEqual([0, [], 1]);
  cluster.releaseLists();
  await eventually(() => expect(passes.length).toBeGreaterThan(0));
  expect(onReady).toHaveBeenCalledOnce();
});

test('an operator that stops before everything is read is never ready', async () => {
  const cluster = new WatchedCluster();
  cluster.holdLists();
  const { onReady, stop, ended, passes } = startIn(cluster);
  stop.abort();
  cluster.releaseLists();
  await ended;
  expect(onReady).not.toHaveBeenCalled();
  expect(passes).toEqual([]);
});

test('the policy is worked on without any event, and metrics have the queue and the passes of each controller', async () => {
  const cluster = new WatchedCluster();
  const { passes, lengths } = startIn(cluster);
  await eventually(() => expect(passes).toContain('policy done'));
  expect([...lengths().keys()].toSorted()).toEqual([
    'annotations',
    'certificates',
    'departed',
    'pinnedImages',
    'policy',
    'pools',
    'rendering',
    'services',
  ]);
  expect([...lengths().values()]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
});

test('metrics say whether signing is disabled; deleted keys disable nothing', async () => {
  const cluster = new WatchedCluster();
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

import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ImageDigestMirrorSets } from '../api/image-sources.ts';
import { type ConfigMap, ConfigMaps, Deployments } from '../api/kubernetes.ts';
import { type MachineConfigPool, MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import {
  BUILDER_DEPLOYMENT,
  MACHINE_CONFIGURATION,
  SIGNING_KEYS_CONFIG_MAP,
  SWITCH_CONFIG_MAP,
} from '../api/names.ts';
import { changeField } from '../cluster/events.ts';
import { builderDeployment } from '../opt-in/builder-deployment.ts';
import { SigningKeys } from '../opt-in/signing-keys.ts';
import { allCaches, createCaches } from '../rollout/caches.ts';
import { DueRenderings } from '../rollout/due-renderings.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { RolloutMetrics } from '../rollout/reports/metrics.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aPool, believeBuilds } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { type RolloutParts, startLayeringController, startRolloutControllers } from './loop.ts';

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
    proveImage: believeBuilds,
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
    'finish',
    'fleetLock',
    'maintenanceDrains',
    'pinnedImages',
    'policy',
    'pools',
    'poweredOff',
    'rendering',
    'services',
  ]);
  expect([...lengths().values()]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
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

test('mirrors that change make a rendering due; those that are there at the start are nothing new', async () => {
  const cluster = new WatchedCluster();
  cluster.put(MachineConfigPools, aPool('worker'));
  const mirrors = (name: string) =>
    cluster.put(ImageDigestMirrorSets, {
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: { name },
      spec: {},
    });
  mirrors('old');
  const marked: string[] = [];
  const mark = vi.spyOn(DueRenderings.prototype, 'mark').mockImplementation((pool) => void marked.push(pool));
  onTestFinished(() => mark.mockRestore());
  const { passes } = startIn(cluster);
  await eventually(() => expect(passes).toContain('rendering done'));
  expect(marked).toEqual([]);
  mirrors('new');
  await eventually(() => expect(marked).toContain('worker'));
});

test('another OS image stream of a pool is due to be rendered, and what the operator writes of the pool is not', async () => {
  const cluster = new WatchedCluster();
  const pool = aPool('worker');
  cluster.put(MachineConfigPools, pool);
  const marked: string[] = [];
  const mark = vi.spyOn(DueRenderings.prototype, 'mark').mockImplementation((name) => void marked.push(name));
  onTestFinished(() => mark.mockRestore());
  const { passes } = startIn(cluster);
  await eventually(() => expect(passes).toContain('rendering done'));
  expect(marked).toEqual([]);
  const { spec } = cluster.get(MachineConfigPools, 'worker') ?? pool;
  cluster.put(MachineConfigPools, { ...pool, spec: { ...spec, osImageStream: { name: 'next' } } });
  await eventually(() => expect(marked).toEqual(['worker']));
});

test("another OS image stream of worker makes the custom pools' renderings due that inherit it", async () => {
  const cluster = new WatchedCluster();
  const named = (name: string, stream?: string) => {
    const pool = aPool(name);
    const spec = stream === undefined ? pool.spec : { ...pool.spec, osImageStream: { name: stream } };
    cluster.put(MachineConfigPools, { ...pool, spec });
  };
  for (const name of ['infra', 'master', 'arbiter']) named(name);
  named('gpu', 'own');
  named('worker', 'first');
  const marked: string[] = [];
  const mark = vi.spyOn(DueRenderings.prototype, 'mark').mockImplementation((name) => void marked.push(name));
  onTestFinished(() => mark.mockRestore());
  const { passes } = startIn(cluster);
  await eventually(() => expect(passes).toContain('rendering done'));
  expect(marked).toEqual([]);
  named('worker', 'next');
  await eventually(() => expect(marked.toSorted()).toEqual(['infra', 'worker']));
  marked.length = 0;
  cluster.remove(MachineConfigPools, 'worker');
  await eventually(() => expect(marked).toEqual(['infra']));
});

test('it runs until the signal, and ends with its last watch', async () => {
  const cluster = new WatchedCluster();
  let isOver = false;
  const { ended, onReady, end } = startIn(cluster);
  const over = ended.finally(() => {
    isOver = true;
  });
  await eventually(() => expect(onReady).toHaveBeenCalledOnce());
  await setImmediate();
  expect(isOver).toBe(false);
  await end();
  await over;
});

describe('layering', () => {
  /** The controller of layering, with caches that its test starts. */
  function startLayering(cluster: WatchedCluster) {
    const log = pino({ level: 'silent' });
    const stop = new AbortController();
    const client = cluster.watchingClient();
    const caches = createCaches(client, defaultRolloutOptions, log);
    const desired = builderDeployment('shale-system', 'shale:1', []);
    let isOver = false;
    const find = vi.spyOn(client, 'find');
    const ended = startLayeringController({
      client,
      caches,
      events: { normal: () => undefined, warning: () => undefined },
      log,
      signal: stop.signal,
      layering: {
        namespace: 'shale-system',
        pruner: { deleteImage: async () => undefined, imageAt: async () => undefined },
        leftImages: { taggedByOthers: async () => new Set(), deleteImage: async () => undefined },
        signing: new SigningKeys({
          client,
          log,
          namespace: 'shale-system',
          now: Date.now,
          secret: {
            read: async () => ({ kind: 'missing' }),
            create: async () => undefined,
            remove: async () => undefined,
          },
        }),
        desiredBuilder: { required: desired, disabled: desired },
        keepImages: 3,
      },
    }).finally(() => {
      isOver = true;
    });
    ended.catch(() => undefined);
    const startShared = () => allCaches(caches).map((cache) => cache.start(stop.signal));
    const end = async () => {
      stop.abort();
      await ended;
    };
    onTestFinished(async () => {
      cluster.releaseLists();
      await end();
    });
    return { find, startShared, end, isOver: () => isOver };
  }

  const switchedOn: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: 'shale-system' },
    data: { enabled: 'true', imageRepository: 'registry:5000/os', signing: 'disabled' },
  };
  const builder = (cluster: WatchedCluster) => cluster.get(Deployments, BUILDER_DEPLOYMENT);

  test('nothing is decided before everything is read, which shows what a builder is there for', async () => {
    const cluster = new WatchedCluster();
    const { metadata, ...deployment } = builderDeployment('shale-system', 'shale:1', []);
    cluster.put(Deployments, {
      ...deployment,
      kind: 'Deployment',
      metadata: { ...metadata, name: BUILDER_DEPLOYMENT },
    });
    const { find, startShared } = startLayering(cluster);
    await delay(20);
    expect([find.mock.calls.length, builder(cluster)]).toEqual([0, expect.anything()]);
    startShared();
    // Without the switch there is no builder.
    await eventually(() => expect(builder(cluster)).toBeUndefined());
  });

  test('it follows the switch, and ends with the signal and not before', async () => {
    const cluster = new WatchedCluster();
    cluster.put(MachineConfigPools, aPool('worker'));
    const { startShared, end, isOver } = startLayering(cluster);
    startShared();
    await delay(20);
    cluster.put(ConfigMaps, switchedOn);
    await eventually(() => expect(builder(cluster)).toBeDefined());
    expect(isOver()).toBe(false);
    await end();
    expect(isOver()).toBe(true);
  });
});

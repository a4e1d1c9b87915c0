import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { MachineConfigs } from '../api/machine-config.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { ApiError } from '../cluster/api-client.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aMachineConfiguration, aMachineOSConfig, aPool, aRenderedConfig } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { engineParts } from './engine/engine-flags.ts';
import { noEngine } from './engine/engines.ts';
import { runBuilder } from './loop.ts';

const BASE = `127.0.0.1:1/os/base@sha256:${'a'.repeat(64)}`;

/** A builder, and the engines of an earlier one that it removes. */
function start(
  cluster: WatchedCluster,
  removeLeftovers: () => Promise<void> = async () => undefined,
  now: () => Date = () => new Date(),
) {
  const stop = new AbortController();
  const engines = { ...noEngine(), removeLeftovers };
  const ended = runBuilder({
    client: cluster.watchingClient(),
    events: { normal: () => undefined, warning: () => undefined },
    log: pino({ enabled: false }),
    namespace: 'shale-system',
    plainHttp: new Set(),
    architecture: 'amd64',
    version: '0',
    created: '1970-01-01T00:00:00Z',
    engine: engineParts({ engineMinutes: 1, engineGibibytes: 1, engineWorkDir: '/nowhere' }, engines, 1),
    parallel: 1,
    baseCheckMs: 60_000,
    now,
    signal: stop.signal,
  });
  ended.catch(() => undefined);
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(end);
  return { end };
}

function requestImage(cluster: WatchedCluster): void {
  cluster.put(MachineConfigurations, aMachineConfiguration('sha256:p'));
  cluster.put(MachineConfigs, aRenderedConfig('rendered-worker-1', BASE));
  cluster.put(MachineConfigPools, aPool('worker', { configuration: { name: 'rendered-worker-1' } }));
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker'));
}

const builds = (cluster: WatchedCluster) => cluster.list(MachineOSBuilds);
const eventually = (check: () => void) => vi.waitFor(check, { timeout: patience(10_000), interval: 5 });

test.each(['before', 'after'])(
  'builds what was requested %s it started, and ends with its signal',
  async (when) => {
    const cluster = new WatchedCluster();
    if (when === 'before') requestImage(cluster);
    const { end } = start(cluster);
    if (when === 'after') requestImage(cluster);
    await eventually(() => {
      expect(builds(cluster)).toMatchObject([
        { spec: { machineOSConfig: { name: 'worker' }, machineConfig: { name: 'rendered-worker-1' } } },
      ]);
    });
    await end();
  },
);

test('removes the engines of an earlier builder before it starts one, and builds where it can not', async () => {
  const cluster = new WatchedCluster();
  const before: number[] = [];
  start(cluster, async () => {
    before.push(builds(cluster).length);
    requestImage(cluster);
    throw new Error('no such pod');
  });
  await eventually(() => expect(builds(cluster)).toHaveLength(1));
  expect(before[0]).toBe(0);
});

test('says of each MachineOSConfig that engines can not be deleted, until they are', async () => {
  const cluster = new WatchedCluster();
  requestImage(cluster);
  let now = Date.now();
  let fails = true;
  start(
    cluster,
    async () => {
      // Not all of the time passes at once: the first failure is when it is.
      now += 20_000;
      if (fails) throw new ApiError(403, 'list pods', { message: 'denied by the platform team' });
    },
    () => new Date(now),
  );
  const condition = () =>
    cluster.get(MachineOSConfigs, 'worker')?.status?.conditions?.find(({ type }) => type === 'StepsFailing');
  await eventually(() =>
    expect(condition()).toMatchObject({
      status: 'True',
      message: expect.stringMatching(
        /^deleting container engines that no build uses fails: .*platform team$/,
      ),
    }),
  );
  fails = false;
  await eventually(() => expect(condition()).toBeUndefined());
});

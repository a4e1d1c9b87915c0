import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Command } from 'commander';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConfigMaps, Deployments, Events, Nodes } from '../api/kubernetes.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { BUILDER_DEPLOYMENT, MACHINE_CONFIGURATION, SWITCH_CONFIG_MAP } from '../api/names.ts';
import { noTracer } from '../cluster/tracing/span.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aNode, aPool } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { type OperatorFlags, withOperatorFlags } from './flags.ts';
import { lead } from './lead.ts';
import { type OperatorState, startOperatorTelemetry } from './status.ts';

interface Line {
  readonly msg: string;
  readonly level: number;
}

function flagsOf(args: readonly string[]): OperatorFlags {
  const command = withOperatorFlags(new Command('operator'));
  command.parse(['--namespace', 'shale-system', ...args], { from: 'user' });
  return command.opts<OperatorFlags>();
}

/** An operator that leads, over objects in memory. */
async function setUp(cluster: WatchedCluster, ...args: readonly string[]) {
  const lines: Line[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const telemetry = await startOperatorTelemetry(0, '127.0.0.1');
  const states: OperatorState[] = [];
  vi.spyOn(telemetry, 'is').mockImplementation((state) => void states.push(state));
  const sent: string[] = [];
  vi.spyOn(telemetry.metrics, 'countNotification').mockImplementation((result) => void sent.push(result));
  const stop = new AbortController();
  const ended = lead({
    client: cluster.watchingClient(),
    log,
    own: { image: 'shale:own', imagePullSecrets: [{ name: 'pull' }], environment: [] },
    flags: flagsOf(args),
    telemetry,
    tracing: { ...noTracer, close: async () => undefined },
    signal: stop.signal,
  });
  ended.catch(() => undefined);
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(async () => {
    cluster.releaseLists();
    await end();
    await telemetry.close();
  });
  return { lines, log, states, sent, end };
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

/** Switches layering on. */
function layered(): WatchedCluster {
  const cluster = new WatchedCluster();
  cluster.put(MachineConfigPools, aPool('worker'));
  cluster.put(ConfigMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: 'shale-system' },
    data: { enabled: 'true', imageRepository: 'registry:5000/os', signing: 'disabled' },
  });
  return cluster;
}

async function builderOf(cluster: WatchedCluster) {
  const deployment = await eventually(
    () => cluster.get(Deployments, BUILDER_DEPLOYMENT) ?? expect.fail('there is no builder'),
  );
  const { containers, imagePullSecrets, nodeSelector } = deployment.spec.template.spec;
  return { container: containers[0] ?? expect.fail('it has no container'), imagePullSecrets, nodeSelector };
}

test('it reads the cluster, leads, and ends with the signal', async () => {
  const cluster = new WatchedCluster();
  cluster.holdLists();
  const { states, end } = await setUp(cluster);
  await eventually(() => expect(states).toEqual(['reading']));
  cluster.releaseLists();
  await eventually(() => expect(states).toEqual(['reading', 'leading']));
  await end();
});

test('the builder runs the image of the operator, with its pull secrets, and listens nowhere', async () => {
  const cluster = layered();
  await setUp(cluster, '--engine', 'none');
  const { container, imagePullSecrets } = await builderOf(cluster);
  expect(container.image).toBe('shale:own');
  expect(imagePullSecrets).toEqual([{ name: 'pull' }]);
  expect(container.args).not.toContain('--metrics-port');
  expect(container).not.toHaveProperty('readinessProbe');
});

test('what the flags say of the builder holds for its pod', async () => {
  const cluster = layered();
  const pod = JSON.stringify({ nodeSelector: { disk: 'fast' } });
  await setUp(cluster, '--engine', 'none', '--builder-metrics-port', '8081', '--builder-pod', pod);
  const { container, nodeSelector } = await builderOf(cluster);
  expect(container.args).toEqual(expect.arrayContaining(['--metrics-port', '8081']));
  expect(container).toHaveProperty('readinessProbe');
  expect(nodeSelector).toMatchObject({ disk: 'fast' });
});

test('the log has the level that the MachineConfiguration requests, and else the flag', async () => {
  const cluster = new WatchedCluster();
  const configuration = {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
  };
  cluster.put(MachineConfigurations, { ...configuration, spec: { operatorLogLevel: 'Debug' } });
  const { log } = await setUp(cluster, '--log-level', 'warn');
  await eventually(() => expect(log.level).toBe('debug'));
  cluster.put(MachineConfigurations, { ...configuration, spec: {} });
  await eventually(() => expect(log.level).toBe('warn'));
});

/** A node that two pools claim, which is worth an event. */
function disputed(): WatchedCluster {
  const cluster = new WatchedCluster();
  for (const name of ['gpu', 'infra']) cluster.put(MachineConfigPools, aPool(name));
  const labels = { 'node-role.kubernetes.io/gpu': '', 'node-role.kubernetes.io/infra': '' };
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', labels } }));
  return cluster;
}

const conflictOf = (cluster: WatchedCluster) => () =>
  expect(cluster.list(Events).map(({ reason }) => reason)).toContain('PoolConflict');

test('events are recorded, and sent to no receiver unless there is one', async () => {
  const cluster = disputed();
  const { sent, lines } = await setUp(cluster);
  await eventually(conflictOf(cluster));
  expect(sent).toEqual([]);
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
});

test('events are recorded, and sent to the receiver under the name of the cluster', async () => {
  const received: { readonly type: string; readonly source: string }[] = [];
  const receiver = createServer(async (request: IncomingMessage, response) => {
    received.push(JSON.parse(await new Response(request).text()));
    response.end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  onTestFinished(() => void receiver.close());
  const { port } = receiver.address() as AddressInfo;
  const cluster = disputed();
  const { sent } = await setUp(
    cluster,
    ...['--notify-url', `http://127.0.0.1:${port}/`, '--notify-source', '/clusters/a'],
  );
  await eventually(conflictOf(cluster));
  await eventually(() => expect(sent).toContain('sent'));
  expect(received).toContainEqual(
    expect.objectContaining({
      source: '/clusters/a',
      type: expect.stringMatching(/^dev\.shale\.operator\./),
    }),
  );
});

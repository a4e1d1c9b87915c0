import { Command } from 'commander';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Deployments, Leases } from '../api/kubernetes.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION, OPERATOR_DEPLOYMENT } from '../api/names.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { patience } from '../test/fixtures/patience.ts';
import { freePort } from '../workshop/apiserver/control-plane/free-port.ts';
import { type OperatorFlags, withOperatorFlags } from './flags.ts';
import { runOperator } from './main.ts';

const NAMESPACE = 'shale-system';

function flagsOf(...args: readonly string[]): OperatorFlags {
  const command = withOperatorFlags(new Command('operator'));
  command.parse(['--namespace', NAMESPACE, '--log-level', 'silent', ...args], { from: 'user' });
  return command.opts<OperatorFlags>();
}

/** The operator's process over objects in memory. */
function start(cluster: WatchedCluster, ...args: readonly string[]) {
  const stop = new AbortController();
  const connect = vi.fn(async () => cluster.watchingClient());
  const ended = runOperator(flagsOf(...args), stop.signal, connect);
  ended.catch(() => undefined);
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(async () => {
    await end().catch(() => undefined);
  });
  return { connect, ended, end };
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

const leads = (cluster: WatchedCluster) => () =>
  expect(cluster.get(MachineConfigurations, MACHINE_CONFIGURATION)?.status?.policyDigest).toBeDefined();
const holder = (cluster: WatchedCluster) =>
  cluster.get(Leases, OPERATOR_DEPLOYMENT)?.spec?.holderIdentity ?? '';

const statusOf = (port: number, where: string) =>
  fetch(`http://127.0.0.1:${port}${where}`).then(({ status }) => status);

test('a receiver that can not be one is refused before anything is asked of the cluster', async () => {
  const { ended, connect } = start(new WatchedCluster(), '--notify-url', 'ftp://receiver');
  await expect(ended).rejects.toMatchObject({ name: 'StartupError', kind: 'refused' });
  expect(connect).not.toHaveBeenCalled();
});

function operatorNamed(cluster: WatchedCluster, name: string): void {
  const template = { metadata: {}, spec: { containers: [{ name: 'a', image: 'shale:deployed' }] } };
  cluster.put(Deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { selector: {}, template },
  });
}

test("it does not start beside OpenShift's own operator, and takes no lease", async () => {
  const cluster = new WatchedCluster();
  operatorNamed(cluster, 'machine-config-operator');
  await expect(start(cluster, '--image', 'shale:test').ended).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringMatching(/runs in this cluster .*two operators would undo each other's work/),
  });
  expect(cluster.writes).toBe(1);
});

test('it needs its own image where the flags name none', async () => {
  const cluster = new WatchedCluster();
  await expect(start(cluster).ended).rejects.toMatchObject({ kind: 'unavailable' });
  expect(cluster.writes).toBe(0);
  operatorNamed(cluster, OPERATOR_DEPLOYMENT);
  start(cluster);
  await eventually(leads(cluster));
});

test.each([
  ['shale-operator-0', /^shale-operator-0$/],
  [undefined, new RegExp(`-${process.pid}$`)],
])(
  'in pod %s it leads as %s, with a connection of its own for the lease, and gives the lease back',
  async (pod, name) => {
    vi.stubEnv('POD_NAME', pod);
    onTestFinished(() => void vi.unstubAllEnvs());
    const cluster = new WatchedCluster();
    const { connect, end } = start(cluster, '--image', 'shale:test');
    await eventually(leads(cluster));
    expect(holder(cluster)).toMatch(name);
    expect(connect).toHaveBeenCalledTimes(2);
    await end();
    expect(holder(cluster)).toBe('');
  },
);

test('health is served where there is a port, until the end', async () => {
  const cluster = new WatchedCluster();
  const port = await freePort();
  const { end } = start(cluster, '--image', 'shale:test', '--metrics-port', String(port));
  await eventually(leads(cluster));
  await eventually(async () => expect(await statusOf(port, '/readyz')).toBe(200));
  await end();
  await expect(statusOf(port, '/healthz')).rejects.toThrow();
});

test('no server is started without a port', async () => {
  const cluster = new WatchedCluster();
  const listening = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
  const before = listening();
  start(cluster, '--image', 'shale:test');
  await eventually(leads(cluster));
  expect(listening()).toBe(before);
});

/** Installed and uninstalled on an API server: what goes, what stays, a second time. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigMaps, CustomResourceDefinitions, Deployments, Nodes, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import { INSTALLED, INSTALLED_KINDS } from '../../cli/uninstall-command.ts';
import { eventually } from '../../workshop/apiserver/conformance/api.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from '../cli/cluster-with-pools.ts';
import { condition } from '../fixtures/objects.ts';
import { patience } from '../fixtures/patience.ts';

const namespace = 'shale-system';
let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  await cluster.addPool('worker', { conditions: [condition('Updated', 'True')] });
  await cluster.addNode('worker-0', 'worker', {}, { mode: 'Layered' });
  const data = { enabled: 'true', imageRepository: 'r.example.com/os/{pool}' };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SWITCH_CONFIG_MAP }, data };
  await cluster.client.create(ConfigMaps, object, { namespace, signal });
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'push' } };
  await cluster.client.create(Secrets, secret, { namespace, signal });
}, patience(PROCESSES_MS));
afterAll(() => cluster.stop());

const operator = () => cluster.client.find(Deployments, 'shale-operator', { namespace, signal });
const cordoned = (value: string | null) =>
  cluster.client.patch(
    Nodes,
    'worker-0',
    { type: 'merge', body: { metadata: { annotations: { 'shale.dev/cordoned': value } } } },
    { signal },
  );

test('every kind that the manifests install is one that goes', async () => {
  const objects = await readKustomization('manifests/overlays/complete');
  const gone = new Set(INSTALLED_KINDS.map(({ kind }) => kind));
  const stays = new Set(objects.map(({ kind }) => kind).filter((kind) => !gone.has(kind)));
  expect([...stays].sort()).toEqual(['CustomResourceDefinition', 'Namespace']);
});

test('asks what becomes of nodes that run images', { timeout: patience(PROCESSES_MS) }, async () => {
  const { exitCode, stderr } = await cluster.shale('uninstall');
  expect(exitCode).toBe(1);
  expect(stderr).toContain('--revert');
  expect(stderr).toContain('--keep');
  expect(await operator()).toBeDefined();
});

test('leaves no node cordoned behind', { timeout: patience(PROCESSES_MS) }, async () => {
  await cordoned('true');
  const { exitCode, stderr } = await cluster.shale('uninstall', '--keep');
  expect(exitCode).toBe(1);
  expect(stderr).toContain('worker-0: an update is in progress');
  expect(await operator()).toBeDefined();
  await cordoned(null);
});

test.each([['--keep'], ['--revert'], ['--keep', '--with-objects']])(
  'leaves no change behind that is rolled back unless it is confirmed: %s %s',
  { timeout: patience(PROCESSES_MS) },
  async (...flags) => {
    const until = toSeconds(new Date(Date.now() + 600_000));
    const text = JSON.stringify({ id: 'a', until, by: 'alice' });
    const body = { metadata: { annotations: { [annotations.rollbackDeadline]: text } } };
    await cluster.client.patch(MachineConfigPools, 'worker', { type: 'merge', body }, { signal });
    const { exitCode, stderr } = await cluster.shale('uninstall', ...flags);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /a change of pool worker \(until 20.*\) is being tried, and only the operator rolls it back/,
    );
    expect(await operator()).toBeDefined();
    expect(await cluster.shale('try', 'confirm')).toMatchObject({ exitCode: 0 });
  },
);

test('prints what nodes will do, and changes nothing in a dry run', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { exitCode, stdout } = await cluster.shale('uninstall', '--revert', '--dry-run');
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: [
      'pool worker: switching 1 of 1 node to the stock image, one reboot per node',
      'then removing Shale from namespace shale-system',
    ].join('\n'),
  });
  const { data } = await cluster.client.get(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal });
  expect(data).toMatchObject({ enabled: 'true' });
  expect(await operator()).toBeDefined();
});

test('switches layering off first when asked to, and waits for it', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { exitCode, stdout, stderr } = await cluster.shale('uninstall', '--revert', '--timeout', '1s');
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^pool worker: switching 1 of 1 node to the stock image/);
  expect(stderr).toContain('timed out after');
  const { data } = await cluster.client.get(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal });
  expect(data).toMatchObject({ enabled: 'false' });
  expect(await operator()).toBeDefined();
});

test('takes away what was installed, and leaves what people wrote', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { exitCode, stderr } = await cluster.shale('uninstall', '--keep');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  for (const kind of INSTALLED_KINDS) {
    const { items } = await cluster.client
      .list(kind, { labelSelector: INSTALLED, signal })
      .catch(() => ({ items: [] }));
    expect(items, kind.kind).toEqual([]);
  }
  expect(await cluster.client.find(ConfigMaps, SWITCH_CONFIG_MAP, { namespace, signal })).toBeUndefined();
  expect(await cluster.client.find(MachineConfigPools, 'worker', { signal })).toBeDefined();
  expect(await cluster.client.find(Secrets, 'push', { namespace, signal })).toBeDefined();
});

test('a second time, with the objects', { timeout: patience(PROCESSES_MS) }, async () => {
  const { exitCode } = await cluster.shale('uninstall', '--keep', '--with-objects');
  expect(exitCode).toBe(0);
  // A definition waits for its objects to go.
  await eventually(
    () => cluster.client.list(CustomResourceDefinitions, { signal }),
    ({ items }) => items.length === 0,
  );
});

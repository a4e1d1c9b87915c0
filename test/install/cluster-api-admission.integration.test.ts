/**
 * What a stolen token of the update extension of Cluster API could write, in both of its clusters: on kube-apiserver where
 * KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { type Answer, type Api, eventually, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
const NAMESPACE = 'shale-system';
const MCO = '/apis/machineconfiguration.openshift.io/v1';
const MACHINES = '/apis/cluster.x-k8s.io/v1beta2/namespaces/shops/machines';
const merge = 'application/merge-patch+json';

let api: Api;
let inManagement: string;
let inWorkload: string;

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, [machineDefinition], { log, signal });
  const base = await readKustomization(path.join(MANIFESTS, 'base'));
  const workload = await readKustomization(path.join(MANIFESTS, 'components/cluster-api-workload'), base);
  const both = await readKustomization(path.join(MANIFESTS, 'components/cluster-api'), workload);
  // Cluster API's own kind isn't there.
  const known = both.filter(({ kind }) => kind !== 'ExtensionConfig');
  await applyObjects(client, known, { log, signal });
  inManagement = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-cluster-api' });
  inWorkload = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-cluster-api-workload' });
  await api.call('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shops' },
  });
  await api.call('POST', MACHINES, {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name: 'm', annotations: { owner: 'them' }, labels: { pool: 'a' } },
    spec: { clusterName: 'shop' },
  });
  for (const name of ['driven', 'other'])
    await api.call('POST', `${MCO}/machineconfigpools`, {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      metadata: { name },
      spec: {
        paused: false,
        ...(name === 'driven' && {
          shale: { drivenBy: { kind: 'MachineDeployment', namespace: 'shops', name: 'md' } },
        }),
      },
    });
  await api.call('POST', `${MCO}/machineconfignodes`, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name: 'n' },
    spec: { node: { name: 'n' }, pool: { name: 'driven' }, configVersion: { desired: 'rendered-x' } },
  });
  // A policy is in force a moment after it was made.
  const denied = ({ status }: Answer) => status === 422 || status === 403;
  await eventually(() => onMachine({ spec: { clusterName: 'b' } }), denied);
  await eventually(() => onPool('driven', { paused: true }), denied);
  await eventually(() => onNode({ spec: { pool: { name: 'b' } } }), denied);
  await eventually(() => createConfig('99-root'), denied);
}, patience(90_000));
afterAll(() => api.stop());

const machineDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'machines.cluster.x-k8s.io' },
  spec: {
    group: 'cluster.x-k8s.io',
    scope: 'Namespaced',
    names: { kind: 'Machine', plural: 'machines', singular: 'machine', listKind: 'MachineList' },
    versions: [
      {
        name: 'v1beta2',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};

const onMachine = (body: object): Promise<Answer> =>
  api.call('PATCH', `${MACHINES}/m?dryRun=All`, body, { token: inManagement, contentType: merge });
const onPool = (name: string, spec: object): Promise<Answer> =>
  api.call(
    'PATCH',
    `${MCO}/machineconfigpools/${name}?dryRun=All`,
    { spec },
    { token: inWorkload, contentType: merge },
  );
const onNode = (body: object): Promise<Answer> =>
  api.call('PATCH', `${MCO}/machineconfignodes/n?dryRun=All`, body, {
    token: inWorkload,
    contentType: merge,
  });
const createConfig = (name: string): Promise<Answer> =>
  api.call(
    'POST',
    `${MCO}/machineconfigs?dryRun=All`,
    {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name },
      spec: { config: { ignition: { version: '3.4.0' } } },
    },
    { token: inWorkload },
  );

const annotated = (annotations: Record<string, string | null>) => ({ metadata: { annotations } });

describe('of a Machine', () => {
  test('it sets and takes back what holds MachineHealthChecks off', async () => {
    const held = { 'cluster.x-k8s.io/skip-remediation': '', 'shale.dev/skip-remediation': 'true' };
    expect(await onMachine(annotated(held))).toMatchObject({ status: 200 });
    expect(await onMachine(annotated({ 'cluster.x-k8s.io/skip-remediation': null }))).toMatchObject({
      status: 200,
    });
  });

  test.each<[string, object]>([
    ['its spec', { spec: { version: 'v2' } }],
    ['labels', { metadata: { labels: { pool: 'b' } } }],
    ['an annotation of others', annotated({ owner: 'us' })],
    ['another annotation', annotated({ 'cluster.x-k8s.io/paused': '' })],
    ['the removal of an annotation', annotated({ owner: null })],
    ['finalizers', { metadata: { finalizers: ['example.com/a'] } }],
  ])('%s is refused', async (_, body) => {
    expect((await onMachine(body)).status).toBeGreaterThanOrEqual(403);
  });

  test('it deletes none', async () => {
    expect(await api.call('DELETE', `${MACHINES}/m`, undefined, { token: inManagement })).toMatchObject({
      status: 403,
    });
  });
});

describe('in a workload cluster', () => {
  test('it writes the MachineConfig of a pool and no other', async () => {
    expect(await createConfig('50-cluster-api-driven')).toMatchObject({ status: 201 });
    expect((await createConfig('00-worker')).status).toBeGreaterThanOrEqual(403);
  });

  test('it changes the stream of a pool that it drives, and nothing else of any', async () => {
    const stream = { osImageStream: { name: 'v1.35.0' } };
    expect(await onPool('driven', stream)).toMatchObject({ status: 200 });
    expect((await onPool('other', stream)).status).toBeGreaterThanOrEqual(403);
    expect((await onPool('driven', { ...stream, paused: true })).status).toBeGreaterThanOrEqual(403);
    expect((await onPool('driven', { ...stream, shale: null })).status).toBeGreaterThanOrEqual(403);
    expect((await onPool('driven', { ...stream, maxUnavailable: 9 })).status).toBeGreaterThanOrEqual(403);
  });

  test('it hands nodes over, and assigns and grants nothing', async () => {
    expect(await onNode(annotated({ 'shale.dev/cluster-api-update': '{}' }))).toMatchObject({ status: 200 });
    expect((await onNode(annotated({ 'shale.dev/retry': '{}' }))).status).toBeGreaterThanOrEqual(403);
    const grant = { level: 'Disrupt', config: 'rendered-x', leaseHolder: 'a' };
    expect((await onNode({ spec: { grant } })).status).toBeGreaterThanOrEqual(403);
  });
});

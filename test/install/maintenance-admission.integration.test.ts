/** Who is about to take a node in hand is told who has it: on kube-apiserver where KUBEBUILDER_ASSETS names one. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { present } from '../../api/present.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { type Answer, type Api, eventually, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';

const BASE = path.join(import.meta.dirname, '../../manifests/base');
const MCO = '/apis/machineconfiguration.openshift.io/v1';
const merge = 'application/merge-patch+json';
const MEDIK8S = 'nodemaintenance.medik8s.io';
const KUBEVIRT = 'nodemaintenance.kubevirt.io';

let api: Api;
let operator: string;

const warningOf = ({ status, body, headers }: Answer) => {
  expect([status < 300, body.message]).toEqual([true, undefined]);
  return String(headers['warning'] ?? '');
};

async function create(place: string, object: object): Promise<void> {
  const { status, body } = await api.call('POST', place, object);
  expect([status, body.message]).toEqual([201, undefined]);
}

const patch = (place: string, body: object, token?: string) =>
  api.call('PATCH', `${place}?dryRun=All`, body, { contentType: merge, ...present({ token }) });

async function createNode(name: string, annotations: Record<string, string> = {}): Promise<void> {
  await create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations } });
}

async function createPool(name: string, machineConfigSelector: object, status: object): Promise<void> {
  const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigPool' };
  const spec = { machineConfigSelector, paused: true };
  await create(`${MCO}/machineconfigpools`, { ...kind, metadata: { name }, spec });
  const written = await api.call(
    'PATCH',
    `${MCO}/machineconfigpools/${name}/status`,
    { status },
    { contentType: merge },
  );
  expect([written.status, written.body.message]).toEqual([200, undefined]);
}

/** The kind of a neighbour, as its operator defines it. */
async function define(group: string): Promise<void> {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const versions = [{ name: 'v1beta1', served: true, storage: true, schema: { openAPIV3Schema: schema } }];
  const names = { kind: 'NodeMaintenance', plural: 'nodemaintenances' };
  const metadata = { name: `nodemaintenances.${group}` };
  const spec = { group, scope: 'Cluster', names, versions };
  const kind = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };
  await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { ...kind, metadata, spec });
}

const maintain = (group: string, nodeName: string) =>
  api.call('POST', `/apis/${group}/v1beta1/nodemaintenances?dryRun=All`, {
    apiVersion: `${group}/v1beta1`,
    kind: 'NodeMaintenance',
    metadata: { name: nodeName },
    spec: { nodeName },
  });

const cordon = (name: string, annotations = {}) =>
  patch(`/api/v1/nodes/${name}`, { metadata: { annotations }, spec: { unschedulable: true } });

const configOf = (role: string, spec: object = { kernelArguments: ['quiet'] }) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: `50-${role}`, labels: { 'machineconfiguration.openshift.io/role': role } },
  spec,
});

const apply = (role: string, token?: string) =>
  api.call('POST', `${MCO}/machineconfigs?dryRun=All`, configOf(role), present({ token }));

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, await readKustomization(BASE), { log, signal });
  operator = await api.tokenOf({ namespace: 'shale-system', name: 'shale-operator' });
  const byRole = (...roles: string[]) => ({
    matchExpressions: [{ key: 'machineconfiguration.openshift.io/role', operator: 'In', values: roles }],
  });
  await createNode('busy');
  await createNode('free');
  await createPool('worker', byRole('worker'), { updatingNodes: ['busy'] });
  const heldNodes = [{ name: 'rack-1', why: 'its lease is held by ops' }];
  await createPool('infra', byRole('worker', 'infra'), { heldNodes });
  const many = Array.from({ length: 6 }, (_, i) => ({ name: `gpu-${i}`, why: 'x'.repeat(256) }));
  await createPool(
    'gpu',
    { matchLabels: { 'machineconfiguration.openshift.io/role': 'gpu' } },
    { heldNodes: many },
  );
  await createPool('quiet', byRole('quiet'), {});
  // Policies and their parameters are in force a moment after they were made.
  const warns = (answer: Answer) => answer.headers['warning'] !== undefined;
  await eventually(() => cordon('busy'), warns);
  await eventually(() => apply('infra'), warns);
  await eventually(() => apply('gpu'), warns);
}, patience(120_000));
afterAll(() => api.stop());

describe('a node that an update holds', () => {
  test('is cordoned with a warning', async () => {
    expect(warningOf(await cordon('busy'))).toContain(
      'Shale is updating node busy of pool worker, and finishes that first',
    );
  });

  test.each([MEDIK8S, KUBEVIRT])('is maintained by %s with a warning', async (group) => {
    await define(group);
    await eventually(
      () => maintain(group, 'free'),
      ({ status }) => status === 201,
    );
    await eventually(
      () => maintain(group, 'busy'),
      ({ headers }) => headers['warning'] !== undefined,
    );
    expect(warningOf(await maintain(group, 'busy'))).toContain('Shale is updating node busy of pool worker');
    expect(warningOf(await maintain(group, 'free'))).toBe('');
  });

  test('is cordoned by Shale, and changed otherwise, without one; nor are other nodes cordoned with one', async () => {
    expect(warningOf(await cordon('busy', { 'shale.dev/cordoned': 'true' }))).toBe('');
    expect(warningOf(await patch('/api/v1/nodes/busy', { metadata: { labels: { a: 'b' } } }))).toBe('');
    expect(warningOf(await cordon('free'))).toBe('');
  });
});

describe('a change of a pool some of whose nodes somebody else holds', () => {
  const skips =
    'pool infra skips 1 node until somebody else gives it back: rack-1 (its lease is held by ops)';

  test.each([
    ['of its own role', 'infra', skips],
    ['of a role that it selects, too', 'worker', skips],
    [
      'of a pool with many such nodes',
      'gpu',
      'pool gpu skips 6 nodes until somebody else gives them back: see shale maintenance list',
    ],
  ])('%s is stored with a warning', async (_what, role, warning) => {
    expect(warningOf(await apply(role))).toContain(warning);
  });

  test('is stored without one where no such pool selects it, and where the operator renders', async () => {
    expect(warningOf(await apply('quiet'))).toBe('');
    expect(warningOf(await apply('infra', operator))).toBe('');
  });

  test('that is deleted, or edited in its spec, warns as well', async () => {
    await create(`${MCO}/machineconfigs`, configOf('infra'));
    const place = `${MCO}/machineconfigs/50-infra`;
    expect(warningOf(await patch(place, { spec: { kernelArguments: ['loud'] } }))).toContain(skips);
    expect(warningOf(await patch(place, { metadata: { annotations: { a: 'b' } } }))).toBe('');
    expect(warningOf(await api.call('DELETE', `${place}?dryRun=All`))).toContain(skips);
  });

  test('of its image warns as well', async () => {
    const of = (name: string) =>
      api.call('POST', `${MCO}/machineosconfigs?dryRun=All`, {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineOSConfig',
        metadata: { name },
        spec: {
          machineConfigPool: { name },
          imageBuilder: { imageBuilderType: 'Job' },
          renderedImagePushSpec: `registry.example.com/os/${name}:latest`,
          renderedImagePushSecret: { name: 'push' },
        },
      });
    expect(warningOf(await of('infra'))).toContain(skips);
    expect(warningOf(await of('quiet'))).toBe('');
  });

  test('that resumes the pool warns as well', async () => {
    const resume = (name: string) => patch(`${MCO}/machineconfigpools/${name}`, { spec: { paused: false } });
    expect(warningOf(await resume('infra'))).toContain(skips);
    expect(warningOf(await resume('quiet'))).toBe('');
  });
});

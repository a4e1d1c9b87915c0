/**
 * What the API server keeps from who has the token of the live page, with everything installed: on kube-apiserver where
 * KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { type Api, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { aPool } from '../fixtures/objects.ts';
import { patience } from '../fixtures/patience.ts';

const COMPLETE = path.join(import.meta.dirname, '../../manifests/overlays/complete');
const NAMESPACE = 'shale-system';
const MCO = '/apis/machineconfiguration.openshift.io/v1';
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces';

let api: Api;
let page: string;

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  // The API server has none of the Prometheus operator's kinds.
  const objects = (await readKustomization(COMPLETE)).filter(
    ({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com/'),
  );
  await applyObjects(client, objects, { log, signal });
  page = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-page' });
}, patience(90_000));
afterAll(() => api.stop());

const { metadata: _, ...pool } = aPool('worker');
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'node-a' }, spec: {} };

test.each<[string, string, string, object | undefined]>([
  ['creates a pool', 'POST', `${MCO}/machineconfigpools`, { ...pool, metadata: { name: 'a' } }],
  ['changes a pool', 'PATCH', `${MCO}/machineconfigpools/worker`, { spec: { paused: false } }],
  [
    'tells a node what to run',
    'PATCH',
    `${MCO}/machineconfignodes/a`,
    { spec: { configVersion: { desired: 'b' } } },
  ],
  ['deletes MachineConfigs', 'DELETE', `${MCO}/machineconfigs`, undefined],
  ['records what may run', 'POST', '/apis/shale.dev/v1/poolrevisions', { metadata: { name: 'a' } }],
  ['cordons a node', 'PATCH', '/api/v1/nodes/a', { spec: { unschedulable: true } }],
  ['switches layering on', 'PATCH', `${CORE}/configmaps/on-cluster-layering`, { data: { enabled: 'true' } }],
  ['creates a ConfigMap', 'POST', `${CORE}/configmaps`, configMap],
  ['takes a node', 'POST', `${LEASES}/medik8s-leases/leases`, lease],
  ["takes the operator's lease", 'POST', `${LEASES}/${NAMESPACE}/leases`, lease],
  ['writes an Event', 'POST', '/api/v1/namespaces/default/events', { metadata: { name: 'a' } }],
  ['lists Secrets', 'GET', `${CORE}/secrets`, undefined],
  ['reads the signing key', 'GET', `${CORE}/secrets/image-signing-key`, undefined],
  [
    'reads its own certificate otherwise than by its mount',
    'GET',
    `${CORE}/secrets/shale-page-tls`,
    undefined,
  ],
  ['lists ConfigMaps', 'GET', `${CORE}/configmaps`, undefined],
  ['lists pods', 'GET', '/api/v1/pods', undefined],
  ['gets a token', 'POST', `${CORE}/serviceaccounts/shale-operator/token`, { spec: {} }],
])('it never %s', async (_what, method, where, body) => {
  const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  expect((await api.call(method, where, body, { token: page, ...contentType })).status).toBe(403);
});

test.each([`${MCO}/machineconfigpools`, `${MCO}/machineconfigs`, '/api/v1/nodes'])(
  'it lists %s, which the page shows',
  async (where) => {
    expect((await api.call('GET', where, undefined, { token: page })).status).toBe(200);
  },
);

test('the operator no longer asks whose a token is: that was for the page', async () => {
  const operator = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-operator' });
  const review = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: {},
    spec: { token: page },
  };
  const where = '/apis/authentication.k8s.io/v1/tokenreviews';
  expect((await api.call('POST', where, review, { token: operator })).status).toBe(403);
  expect(await api.call('POST', where, review, { token: page })).toMatchObject({
    status: 201,
    body: { status: { authenticated: true } },
  });
});

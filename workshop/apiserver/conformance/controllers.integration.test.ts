/** Garbage collection and eviction as Kubernetes documents them; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, eventually, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
}, START_MS);
afterAll(() => api.stop());

const merge = { contentType: 'application/merge-patch+json' };
const configMaps = '/api/v1/namespaces/default/configmaps';
const pods = '/api/v1/namespaces/default/pods';

async function createConfigMap(metadata: object) {
  return (await api.call('POST', configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata })).body;
}

const ownedBy = ({ metadata }: { metadata: { name: string; uid: string } }, more: object = {}) => ({
  ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: metadata.name, uid: metadata.uid, ...more }],
});

const present = (path: string) => api.call('GET', path).then(({ status }) => status === 200);

/** kube-controller-manager's part; where a control plane is kube-apiserver and etcd alone, nobody does it. */
const withControllers = (name: string, body: () => Promise<void>) =>
  test(name, async (context) => {
    if (!api.controllers) context.skip('this control plane runs no controllers');
    await body();
  });

describe('garbage collection', () => {
  withControllers('takes what an object owns with it', async () => {
    const owner = await createConfigMap({ name: uniqueName('owner') });
    const name = uniqueName('owned');
    await createConfigMap({ name, ...ownedBy(owner) });
    await api.call('DELETE', `${configMaps}/${owner.metadata.name}`);
    await eventually(
      () => present(`${configMaps}/${name}`),
      (there) => !there,
    );
  });

  withControllers('in the foreground deletes the owner last', async () => {
    const owner = await createConfigMap({ name: uniqueName('owner') });
    const held = uniqueName('held');
    await createConfigMap({
      name: held,
      finalizers: ['example.org/hold'],
      ...ownedBy(owner, { blockOwnerDeletion: true }),
    });
    const path = `${configMaps}/${owner.metadata.name}`;
    await api.call('DELETE', path, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
    });
    await eventually(
      () => api.call('GET', `${configMaps}/${held}`),
      ({ body }) => body.metadata.deletionTimestamp !== undefined,
    );
    expect(await present(path)).toBe(true);
    await api.call('PATCH', `${configMaps}/${held}`, { metadata: { finalizers: null } }, merge);
    await eventually(
      () => present(path),
      (there) => !there,
    );
  });

  withControllers('leaves orphans where told', async () => {
    const owner = await createConfigMap({ name: uniqueName('owner') });
    const name = uniqueName('orphan');
    await createConfigMap({ name, ...ownedBy(owner) });
    const path = `${configMaps}/${owner.metadata.name}`;
    await api.call('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Orphan' });
    await eventually(
      () => present(path),
      (there) => !there,
    );
    expect((await api.call('GET', `${configMaps}/${name}`)).body.metadata.ownerReferences).toBeUndefined();
  });

  withControllers('empties a namespace that is deleted', async () => {
    const name = uniqueName('namespace');
    await api.call('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const inside = `/api/v1/namespaces/${name}/configmaps`;
    await api.call('POST', inside, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', finalizers: ['example.org/hold'] },
    });
    await api.call('DELETE', `/api/v1/namespaces/${name}`);
    const refused = await api.call('POST', inside, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'b' },
    });
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain('because it is being terminated');
    await api.call('PATCH', `${inside}/a`, { metadata: { finalizers: null } }, merge);
    await eventually(
      () => present(`/api/v1/namespaces/${name}`),
      (there) => !there,
    );
  });
});

describe('eviction', () => {
  async function runPod(app: string): Promise<string> {
    const name = uniqueName('pod');
    const spec = {
      containers: [{ name: 'a', image: 'a' }],
      nodeName: 'nowhere',
      terminationGracePeriodSeconds: 5,
    };
    await api.call('POST', pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app } },
      spec,
    });
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await api.call('PATCH', `${pods}/${name}/status`, { status }, merge);
    return name;
  }

  const evict = (name: string) =>
    api.call('POST', `${pods}/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name },
    });

  withControllers('asks the disruption budget, and the pod for its grace period', async () => {
    const app = uniqueName('app');
    const [first, second] = [await runPod(app), await runPod(app)];
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    await api.call('POST', budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: app },
      spec: { minAvailable: 1, selector: { matchLabels: { app } } },
    });
    await eventually(
      () => api.call('GET', `${budgets}/${app}`),
      ({ body }) => body.status?.disruptionsAllowed === 1,
    );
    expect((await evict(first)).status).toBe(201);
    const terminating = (await api.call('GET', `${pods}/${first}`)).body;
    expect(terminating.metadata).toMatchObject({ deletionGracePeriodSeconds: 5 });
    const refused = await evict(second);
    expect([refused.status, refused.body.reason]).toEqual([429, 'TooManyRequests']);
    expect(refused.body.message).toBe("Cannot evict pod as it would violate the pod's disruption budget.");
    expect(refused.body.details.causes[0].message).toContain(
      `The disruption budget ${app} needs 1 healthy pods and has 1`,
    );
    await eventually(
      () => api.call('GET', `${budgets}/${app}`),
      ({ body }) => body.status.disruptionsAllowed === 0 && body.status.currentHealthy === 1,
    );
    // The kubelet's last word.
    await api.call('DELETE', `${pods}/${first}`, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
    });
    expect(await present(`${pods}/${first}`)).toBe(false);
  });

  test.each([
    ['in the query', '?dryRun=All', {}],
    ['in its options', '', { deleteOptions: { dryRun: ['All'] } }],
  ])('with dryRun %s keeps the pod', async (_, query, more) => {
    const name = await runPod(uniqueName('app'));
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...more };
    expect((await api.call('POST', `${pods}/${name}/eviction${query}`, eviction)).status).toBe(201);
    expect((await api.call('GET', `${pods}/${name}`)).body.metadata.deletionTimestamp).toBeUndefined();
  });

  test('without a budget goes through; of a pod that is not there is 404', async () => {
    const name = await runPod(uniqueName('app'));
    expect((await evict(name)).status).toBe(201);
    expect((await evict('nobody')).status).toBe(404);
  });
});

/** RBAC as Kubernetes documents it; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
let token: string;
const account = uniqueName('account');
const user = `system:serviceaccount:default:${account}`;
const rbac = '/apis/rbac.authorization.k8s.io/v1';

beforeAll(async () => {
  api = await startApi();
  await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: account },
  });
  token = await tokenFor({});
  await grant('pods', [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'], resourceNames: ['allowed'] },
  ]);
}, START_MS);
afterAll(() => api.stop());

async function tokenFor(spec: Record<string, unknown>): Promise<string> {
  const { status, body } = await api.call(
    'POST',
    `/api/v1/namespaces/default/serviceaccounts/${account}/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: ['https://kubernetes.default.svc'], ...spec },
    },
  );
  expect(status).toBe(201);
  return body.status.token;
}

/** Binds a role in namespace default to the service account. */
async function grant(name: string, rules: readonly object[]): Promise<void> {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const namespaced = `${rbac}/namespaces/default`;
  await api.call('POST', `${namespaced}/roles`, { apiVersion, kind: 'Role', metadata: { name }, rules });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name };
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'default' }];
  await api.call('POST', `${namespaced}/rolebindings`, {
    apiVersion,
    kind: 'RoleBinding',
    metadata: { name },
    roleRef,
    subjects,
  });
}

describe('a service account', () => {
  test('may do what a role says, and nothing else', async () => {
    const configMaps = '/api/v1/namespaces/default/configmaps';
    expect((await api.call('GET', `${configMaps}/allowed`, undefined, { token })).status).toBe(404);
    const refused = await api.call('GET', `${configMaps}/other`, undefined, { token });
    expect([refused.status, refused.body.reason]).toEqual([403, 'Forbidden']);
    expect(refused.body.message).toBe(
      `configmaps "other" is forbidden: User "${user}" cannot get resource "configmaps" in API group "" in the namespace "default"`,
    );
    const elsewhere = '/api/v1/namespaces/kube-system/configmaps/allowed';
    expect((await api.call('GET', elsewhere, undefined, { token })).status).toBe(403);
  });

  test('may list by name what it may get by name', async () => {
    const list = '/api/v1/namespaces/default/configmaps';
    expect((await api.call('GET', list, undefined, { token })).status).toBe(403);
    expect(
      (await api.call('GET', `${list}?fieldSelector=metadata.name%3Dallowed`, undefined, { token })).status,
    ).toBe(200);
  });

  test('learns what it may do', async () => {
    const ask = (verb: string) =>
      api.call(
        'POST',
        '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: {
            resourceAttributes: { verb, resource: 'configmaps', namespace: 'default', name: 'allowed' },
          },
        },
        { token },
      );
    expect((await ask('get')).body.status.allowed).toBe(true);
    expect((await ask('delete')).body.status.allowed).toBe(false);
  });

  test('is named by its token', async () => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
    const { body } = await api.call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
    expect(body.status).toMatchObject({ authenticated: true, user: { username: user } });
    expect(body.status.user.groups).toContain('system:serviceaccounts:default');
  });
});

describe('a service account that may write bindings', () => {
  const reader = uniqueName('reader');
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const at = (plural: string) => `${rbac}/namespaces/default/${plural}`;
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'default' }];
  const bind = (role: string, name = role) => {
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role };
    const binding = { apiVersion, kind: 'RoleBinding', metadata: { name }, roleRef, subjects };
    return api.call('POST', at('rolebindings'), binding, { token });
  };
  const addRole = (name: string, rules: readonly object[], as?: string) =>
    api.call(
      'POST',
      at('roles'),
      { apiVersion, kind: 'Role', metadata: { name }, rules },
      as === undefined ? {} : { token: as },
    );

  beforeAll(async () => {
    const all = (
      verbs: readonly string[],
      resources: readonly string[],
      resourceNames?: readonly string[],
    ) => ({
      apiGroups: ['rbac.authorization.k8s.io'],
      resources,
      verbs,
      ...(resourceNames === undefined ? {} : { resourceNames }),
    });
    await grant('binder', [
      all(['create', 'update', 'delete'], ['roles', 'rolebindings']),
      all(['bind'], ['roles'], [`${reader}-bindable`]),
    ]);
    const secrets = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
    await addRole(reader, secrets);
    await addRole(`${reader}-bindable`, secrets);
  });

  test('gives no rights that it has not, unless it may bind the role', async () => {
    const refused = await bind(reader);
    expect([refused.status, refused.body.reason]).toEqual([403, 'Forbidden']);
    expect(refused.body.message).toContain('is attempting to grant RBAC permissions not currently held');
    expect((await bind(`${reader}-bindable`)).status).toBe(201);
    expect((await bind(`${reader}-absent`)).status).toBe(404);
  });

  test('makes no role that allows more than itself may', async () => {
    const configMaps = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };
    const own = [{ ...configMaps, resourceNames: ['allowed'] }];
    expect((await addRole(`${reader}-own`, own, token)).status).toBe(201);
    expect((await bind(`${reader}-own`)).status).toBe(201);
    expect((await addRole(`${reader}-more`, [configMaps], token)).status).toBe(403);
    expect((await addRole(`${reader}-all`, [{ ...configMaps, verbs: ['*'] }], token)).status).toBe(403);
  });

  test('and nobody gives a binding another role', async () => {
    const name = `${reader}-bindable`;
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: reader };
    const binding = { apiVersion, kind: 'RoleBinding', metadata: { name }, roleRef, subjects };
    const answer = await api.call('PUT', `${at('rolebindings')}/${name}`, binding);
    expect([answer.status, answer.body.reason]).toEqual([422, 'Invalid']);
  });
});

test('a token bound to a node says so', async () => {
  const name = uniqueName('node');
  await api.call('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const bound = await tokenFor({ boundObjectRef: { apiVersion: 'v1', kind: 'Node', name } });
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: bound } };
  const { body } = await api.call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
  expect(body.status.user.extra['authentication.kubernetes.io/node-name']).toEqual([name]);
  await api.call('DELETE', `/api/v1/nodes/${name}`);
});

test('a token that is none is refused', async () => {
  const { status, body } = await api.call('GET', '/api/v1/nodes', undefined, { token: 'x' });
  expect([status, body.reason]).toEqual([401, 'Unauthorized']);
});

test('everybody finds out what the API has', async () => {
  const { body } = await api.call('GET', '/apis', undefined, { token });
  expect(body.groups.map(({ name }: { name: string }) => name)).toContain('apps');
  const core = (await api.call('GET', '/api/v1', undefined, { token })).body;
  const pods = core.resources.find(({ name }: { name: string }) => name === 'pods');
  expect(pods).toMatchObject({ kind: 'Pod', namespaced: true, shortNames: ['po'] });
  expect((await api.call('GET', '/version', undefined, { token })).body.major).toBe('1');
});

test('an administrator finds out which paths there are', async () => {
  const { status, body } = await api.call('GET', '/');
  expect(status).toBe(200);
  expect(body.paths).toEqual(
    expect.arrayContaining(['/api/v1', '/apis', '/apis/apps/v1', '/readyz', '/version']),
  );
  expect((await api.call('GET', '/', undefined, { token })).status).toBe(403);
});

test.each([
  '/api/v1/persistentvolumes',
  '/api/v1/persistentvolumeclaims',
  '/apis/storage.k8s.io/v1/volumeattachments',
])('a client that waits for volumes finds none: %s', async (path) => {
  const { status, body } = await api.call('GET', path);
  expect([status, body.items]).toEqual([200, []]);
});

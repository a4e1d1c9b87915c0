import path from 'node:path';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import type { AuditEvent } from '../../workshop/apiserver/http/request-listener.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { neverUsed, permissionsInAll, permissionsOf, refusedRequests, wordsOf } from './permissions.ts';
import { RARELY_USED } from './rarely-used.ts';

// What the tour makes of these is looked at in test/e2e/tour.e2e.test.ts.

const manifests = await readKustomization(path.join(import.meta.dirname, '../../manifests/base'));

test('what is said of rarely used permissions is about permissions that are granted', () => {
  const granted = new Set(permissionsInAll(manifests).map(wordsOf));
  expect(Object.keys(RARELY_USED).filter((words) => !granted.has(words))).toEqual([]);
});

test('no permission is a wildcard', () => {
  const wide = permissionsInAll(manifests).filter(({ group, resource, verb }) =>
    [group, resource, verb].some((part) => part.includes('*')),
  );
  expect(wide.map(wordsOf)).toEqual([]);
});

test('while layering is off nothing holds the rights of the builder', () => {
  expect(permissionsOf(manifests).filter(({ account }) => account === 'machine-os-builder')).toEqual([]);
  expect(permissionsInAll(manifests).some(({ account }) => account === 'machine-os-builder')).toBe(true);
});

test("of all roles that it has not itself the operator may bind the builder's alone", () => {
  const rbac = permissionsOf(manifests).filter(({ group }) => group === 'rbac.authorization.k8s.io');
  const told = rbac.filter(({ verb }) => ['bind', 'escalate', '*'].includes(verb)).map(wordsOf);
  expect(told).toEqual([
    'shale-operator: bind clusterroles.rbac.authorization.k8s.io machine-os-builder',
    'shale-operator: bind roles.rbac.authorization.k8s.io machine-os-builder in shale-system',
    'shale-operator: bind roles.rbac.authorization.k8s.io machine-os-builder in shale-builds',
  ]);
});

test('a daemon writes the status of MachineConfigNodes and events, and nothing else: no Node', () => {
  const daemons = permissionsInAll(manifests).filter(({ account }) => account === 'shale-daemon');
  const writes = daemons.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb));
  expect(writes.map(wordsOf)).toEqual([
    'shale-daemon: update machineconfignodes/status.machineconfiguration.openshift.io',
    'shale-daemon: create events in default',
    'shale-daemon: patch events in default',
  ]);
  const lists = daemons.filter(({ verb }) => verb === 'list' || verb === 'watch');
  expect([...new Set(lists.map(({ resource }) => resource))]).toEqual([
    'machineconfignodes',
    'machineconfigurations',
  ]);
});

test('whoever has the token of the page changes nothing, and reads no Secret, ConfigMap or pod', async () => {
  const complete = await readKustomization(
    path.join(import.meta.dirname, '../../manifests/overlays/complete'),
  );
  const page = permissionsOf(complete).filter(({ account }) => account === 'shale-page');
  const others = page.filter(({ verb }) => verb !== 'list' && verb !== 'watch');
  expect(others.map(wordsOf)).toEqual([
    'shale-page: create tokenreviews.authentication.k8s.io',
    'shale-page: create subjectaccessreviews.authorization.k8s.io',
  ]);
  expect([...new Set(page.filter((each) => !others.includes(each)).map(({ resource }) => resource))]).toEqual(
    [
      ...['machineconfigpools', 'machineconfignodes', 'machineosbuilds', 'machineconfigurations', 'nodes'],
      ...['nodemaintenances', 'machineconfigs', 'poolrevisions', 'leases'],
    ],
  );
  const reviews = permissionsOf(complete).filter(({ resource }) => /reviews$/.test(resource));
  expect([...new Set(reviews.map(({ account }) => account))]).toEqual(['shale-page']);
});

const objects = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'r', namespace: 'n' },
    rules: [{ apiGroups: [''], resources: ['secrets', 'pods/log'], verbs: ['get'], resourceNames: ['a'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'b', namespace: 'n' },
    roleRef: { kind: 'Role', name: 'r' },
    subjects: [{ kind: 'ServiceAccount', name: 's', namespace: 'n' }],
  },
] as unknown as KubernetesObject[];
const event: AuditEvent = {
  user: 'system:serviceaccount:n:s',
  verb: 'get',
  group: '',
  resource: 'secrets',
  subresource: '',
  namespace: 'n',
  name: 'a',
  status: 200,
};

test.each<[string, AuditEvent, string[]]>([
  ['a permission that was used', event, ['s: get pods/log a in n']],
  [
    'one that was asked for by another',
    { ...event, user: 'system:serviceaccount:n:t' },
    ['s: get secrets a in n', 's: get pods/log a in n'],
  ],
  ['one for another name', { ...event, name: 'b' }, ['s: get secrets a in n', 's: get pods/log a in n']],
  ['one that was refused', { ...event, status: 403 }, ['s: get secrets a in n', 's: get pods/log a in n']],
  ['one for a subresource', { ...event, resource: 'pods', subresource: 'log' }, ['s: get secrets a in n']],
])('%s', (_, seen, unused) => {
  expect(neverUsed(permissionsOf(objects), [seen]).map(wordsOf)).toEqual(unused);
});

test('a refusal of a service account is reported, and no other', () => {
  const refused = { ...event, status: 403 };
  expect(refusedRequests([event, refused, { ...refused, user: 'eve' }], new Set(['s']))).toHaveLength(1);
});

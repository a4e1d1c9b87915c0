/**
 * A user who may write MachineConfigs of one pool and one folder alone, and asks the operator to write another one:
 * what they carry in the annotation by which earlier versions undid a change, the operator wrote as itself.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { labels } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { eventually } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { log, NAMESPACE } from '../e2e/cluster-under-test.ts';
import { type FleetUnderTest, startFleetUnderTest } from '../e2e/fleet-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const signal = deadline(200_000);
const CARRIED = 'shale.dev/try';
const PAST = '2020-01-01T00:00:00Z';
const SUDOERS = '/etc/sudoers.d/99-author';
const AUTHOR = 'author';
const NAME = '60-author';

let fleet: FleetUnderTest;
let author: ApiClient;

beforeAll(async () => {
  fleet = await startFleetUnderTest(signal);
  await applyObjects(fleet.client, [...RIGHTS, ...POLICY], { log, signal });
  author = await fleet.cluster.clientOf(AUTHOR);
  await fleet.addPool('small');
  await fleet.addPool('large');
  await fleet.addNode('large-0', 'large');
  // A policy is in force a moment after it was made.
  await eventually(refusal, (why) => why !== undefined);
}, patience(90_000));
afterAll(() => fleet.stop());

test('has it write nothing that their own policy refuses them', { timeout: patience(60_000) }, async () => {
  const own = aConfig('small', '/etc/app/a');
  const before = { labels: { [labels.role]: 'large' }, spec: aConfig('large', SUDOERS).spec };
  const carrying = { ...own, metadata: { ...own.metadata, annotations: carried(own, before) } };
  await author.create(MachineConfigs, carrying, { signal });
  await operatorHasSeenAll();
  const after = await fleet.client.get(MachineConfigs, NAME, { signal });
  expect(after).toMatchObject({ metadata: { labels: own.metadata.labels ?? {} }, spec: own.spec });
  expect(JSON.stringify(await fleet.client.list(MachineConfigs, { signal }))).not.toContain(SUDOERS);
});

test('has it delete nothing that they may not delete', { timeout: patience(60_000) }, async () => {
  const config = await fleet.client.get(MachineConfigs, '50-small', { signal });
  expect(await attempt(author.delete(MachineConfigs, '50-small', { signal }))).toContain('cannot delete');
  const metadata = { annotations: carried(config, undefined) };
  await author.patch(MachineConfigs, '50-small', { type: 'merge', body: { metadata } }, { signal });
  await operatorHasSeenAll();
  expect(await fleet.client.find(MachineConfigs, '50-small', { signal })).toMatchObject({
    spec: config.spec,
  });
});

/** @returns why the policy refuses the author a file of another pool; undefined before it is in force. */
async function refusal(): Promise<string | undefined> {
  const outcome = await attempt(author.create(MachineConfigs, aConfig('large', SUDOERS), { signal }));
  if (outcome !== 'done') return outcome;
  await fleet.client.delete(MachineConfigs, NAME, { signal });
  return undefined;
}

/** A later change is rendered and has arrived: what the operator does about the events before is done. */
async function operatorHasSeenAll(): Promise<void> {
  const content = String(performance.now());
  await fleet.runs('large-0', await fleet.change('large', content));
}

/** @returns the annotation as `shale try` wrote it up to the version that had the operator undo it. */
function carried(
  { metadata }: NewObject<MachineConfig>,
  before: object | undefined,
): Readonly<Record<string, string>> {
  const sorted = [metadata.labels ?? {}, metadata.annotations ?? {}].map((of) =>
    Object.entries(of).toSorted(),
  );
  const request = {
    id: 'a',
    until: PAST,
    by: AUTHOR,
    at: PAST,
    generation: metadata.generation ?? 1,
    metadata: createHash('sha256').update(JSON.stringify(sorted)).digest('hex'),
    ...(before === undefined ? {} : { before: gzipSync(JSON.stringify(before)).toString('base64') }),
  };
  return { [CARRIED]: JSON.stringify(request) };
}

function aConfig(role: string, file: string): NewObject<MachineConfig> {
  const files = [{ path: file, mode: 0o440, contents: { source: 'data:,author%20ALL%3D(ALL)%20NOPASSWD' } }];
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: NAME, labels: { [labels.role]: role } },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } },
  };
}

/** @returns `done`, or why the API server refuses it. */
async function attempt(write: Promise<unknown>): Promise<string> {
  return write.then(
    () => 'done',
    (error: unknown) => String(error),
  );
}

const RIGHTS = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: AUTHOR, namespace: NAMESPACE } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: AUTHOR },
    rules: [
      {
        apiGroups: ['machineconfiguration.openshift.io'],
        resources: ['machineconfigs'],
        verbs: ['get', 'create', 'update', 'patch'],
      },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: AUTHOR },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: AUTHOR },
    subjects: [{ kind: 'ServiceAccount', name: AUTHOR, namespace: NAMESPACE }],
  },
];

/** The cluster's own, which Shale knows nothing of. */
const POLICY = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: AUTHOR },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ['machineconfiguration.openshift.io'],
            apiVersions: ['v1'],
            operations: ['CREATE', 'UPDATE'],
            resources: ['machineconfigs'],
          },
        ],
      },
      matchConditions: [
        {
          name: 'is-the-author',
          expression: `request.userInfo.username == 'system:serviceaccount:${NAMESPACE}:${AUTHOR}'`,
        },
      ],
      validations: [
        {
          expression: `object.metadata.labels['${labels.role}'] == 'small' && object.spec.config.storage.files.all(file, file.path.startsWith('/etc/app/') || file.path == '/etc/small')`,
          message: 'the author writes MachineConfigs of the pool small and of the folder /etc/app alone',
        },
      ],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: AUTHOR },
    spec: { policyName: AUTHOR, validationActions: ['Deny'] },
  },
];

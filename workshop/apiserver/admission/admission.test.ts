import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { serviceAccountUser, type User } from '../access/attributes.ts';
import type { JsonObject } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-metadata.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { createStore } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { createAdmission } from './admission.ts';

const NODES: Resource = {
  ...builtinResource('', 'nodes'),
  group: 'machineconfiguration.openshift.io',
  plural: 'machineconfignodes',
  kind: 'MachineConfigNode',
};

function storeWith(...objects: readonly JsonObject[]) {
  const store = createStore();
  for (const object of objects) {
    const plural =
      object['kind'] === 'ValidatingAdmissionPolicy'
        ? 'validatingadmissionpolicies'
        : 'validatingadmissionpolicybindings';
    const resource = builtinResource('admissionregistration.k8s.io', plural);
    store.put(bucketOf(resource), object as StoredObject);
  }
  return store;
}

const request = (more: Partial<AdmissionRequest>): AdmissionRequest => ({
  operation: 'UPDATE',
  resource: NODES,
  subresource: 'status',
  namespace: '',
  name: 'a',
  user: serviceAccountUser('shale-system', 'shale-daemon'),
  object: { metadata: { name: 'a' } },
  ...more,
});

const onNode = (name: string): User => ({
  ...serviceAccountUser('shale-system', 'shale-daemon'),
  extra: { 'authentication.kubernetes.io/node-name': [name] },
});

describe("this project's own policy", () => {
  const file = join(import.meta.dirname, '../../../manifests/base/daemon-admission.yaml');
  const admit = createAdmission(
    storeWith(
      ...parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as JsonObject),
    ),
  );

  test('lets a daemon write the node it runs on', async () => {
    await expect(admit(request({ user: onNode('a') }))).resolves.toBeUndefined();
  });

  test.each([
    ['of another node', onNode('b')],
    ['without a node', serviceAccountUser('shale-system', 'shale-daemon')],
  ])('keeps a daemon %s from it', async (_, user) => {
    await expect(admit(request({ user }))).rejects.toMatchObject({
      code: 422,
      message: expect.stringContaining(
        "ValidatingAdmissionPolicy 'shale-daemon-own-node' with binding 'shale-daemon-own-node' denied request: a daemon may write only",
      ),
    });
  });

  test('is not about others, nor about other resources', async () => {
    await admit(request({ user: serviceAccountUser('shale-system', 'shale-operator') }));
    await admit(request({ resource: builtinResource('', 'nodes'), user: onNode('b') }));
  });
});

function policy(spec: JsonObject): JsonObject {
  const matchConstraints = {
    resourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }],
  };
  return { kind: 'ValidatingAdmissionPolicy', metadata: { name: 'p' }, spec: { matchConstraints, ...spec } };
}

function binding(validationActions: readonly string[]): JsonObject {
  return {
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'b' },
    spec: { policyName: 'p', validationActions },
  };
}

test('variables, message expressions and reasons', async () => {
  const spec = {
    variables: [
      { name: 'n', expression: 'object.metadata.name' },
      { name: 'm', expression: "variables.n + '!'" },
    ],
    validations: [
      { expression: "variables.n == 'x'", messageExpression: "'not ' + variables.m", reason: 'Forbidden' },
    ],
  };
  const admit = createAdmission(storeWith(policy(spec), binding(['Deny'])));
  await expect(admit(request({}))).rejects.toMatchObject({
    code: 403,
    message: expect.stringContaining('not a!'),
  });
});

test('what only warns lets through, and so does a policy without a binding', async () => {
  const never = policy({ validations: [{ expression: 'false' }] });
  await createAdmission(storeWith(never, binding(['Warn'])))(request({}));
  await createAdmission(storeWith(never))(request({}));
  await expect(createAdmission(storeWith(never, binding(['Deny'])))(request({}))).rejects.toThrow(
    'failed expression: false',
  );
});

test.each([
  ['Fail', false],
  ['Ignore', true],
])(
  'a policy that can not be evaluated with failurePolicy %s: through is %s',
  async (failurePolicy, through) => {
    const broken = policy({ failurePolicy, validations: [{ expression: 'object.spec.x > 1' }] });
    const admitted = createAdmission(storeWith(broken, binding(['Deny'])))(request({}));
    await (through
      ? expect(admitted).resolves.toBeUndefined()
      : expect(admitted).rejects.toThrow('denied request'));
  },
);

test('a policy that can not be compiled is refused when it is written', async () => {
  const admit = createAdmission(createStore());
  const resource = builtinResource('admissionregistration.k8s.io', 'validatingadmissionpolicies');
  const object = policy({ validations: [{ expression: 'object.' }] });
  await expect(
    admit(request({ resource, subresource: '', object, operation: 'CREATE' })),
  ).rejects.toMatchObject({ code: 422 });
});

test('an update can not escape a policy by taking its label away', async () => {
  const matchConstraints = {
    resourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }],
    objectSelector: { matchLabels: { guarded: 'yes' } },
  };
  const guarded = policy({ matchConstraints, validations: [{ expression: 'false', message: 'no' }] });
  const admit = createAdmission(storeWith(guarded, binding(['Deny'])));
  const oldObject = { metadata: { name: 'a', labels: { guarded: 'yes' } } } as unknown as StoredObject;
  await expect(admit(request({ oldObject }))).rejects.toThrow('no');
  await admit(request({}));
});

test('a variable that nothing asks for can not fail a request', async () => {
  const spec = {
    variables: [{ name: 'old', expression: 'oldObject.metadata.name' }],
    matchConditions: [{ name: 'never', expression: 'false' }],
    validations: [{ expression: "variables.old == 'a'" }],
  };
  await createAdmission(storeWith(policy(spec), binding(['Deny'])))(request({}));
});

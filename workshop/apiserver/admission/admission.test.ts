import { expect, test } from 'vitest';
import { serviceAccountUser, type User } from '../access/attributes.ts';
import type { JsonObject } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-metadata.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { createStore } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { createAdmission } from './admission.ts';

const WIDGETS: Resource = {
  ...builtinResource('', 'nodes'),
  group: 'example.dev',
  plural: 'widgets',
  kind: 'Widget',
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
  resource: WIDGETS,
  subresource: 'status',
  namespace: '',
  name: 'a',
  user: serviceAccountUser('default', 'robot'),
  object: { metadata: { name: 'a' } },
  ...more,
});

const onNode = (name: string): User => ({
  ...serviceAccountUser('default', 'robot'),
  extra: { 'authentication.kubernetes.io/node-name': [name] },
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

test.each([
  ['lets a user of that node pass', onNode('a'), WIDGETS, undefined],
  ['denies one of another node', onNode('b'), WIDGETS, 'its own'],
  ['denies one of no node', serviceAccountUser('default', 'robot'), WIDGETS, 'its own'],
  ['is not about another user', serviceAccountUser('default', 'other'), WIDGETS, undefined],
  ['is not about another resource', onNode('b'), builtinResource('', 'nodes'), undefined],
])('a policy about who asks %s', async (_name, user, resource, denial) => {
  const spec = {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: ['example.dev'],
          apiVersions: ['*'],
          operations: ['UPDATE'],
          resources: ['widgets/status'],
        },
      ],
    },
    matchConditions: [
      { name: 'robot', expression: "request.userInfo.username == 'system:serviceaccount:default:robot'" },
    ],
    validations: [
      {
        expression:
          "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'].orValue([]) == [object.metadata.name]",
        message: 'its own only',
      },
    ],
  };
  const admit = createAdmission(storeWith(policy(spec), binding(['Deny'])));
  const admitted = admit(request({ user, resource }));
  await (denial === undefined
    ? expect(admitted).resolves.toBeUndefined()
    : expect(admitted).rejects.toMatchObject({
        code: 422,
        message: expect.stringContaining(
          `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ${denial}`,
        ),
      }));
});

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

test.each([
  ['nobody may do it', [], undefined],
  ['a role for that name', [rule('use', ['a'])], true],
  ['a role for another name', [rule('use', ['b'])], undefined],
  ['a role for another verb', [rule('get', ['a'])], undefined],
])('authorizer answers what the user of the request may do: %s', async (_, rules, may) => {
  const expression =
    "authorizer.group('').resource('secrets').namespace('default').name(object.metadata.name).check('use').allowed()";
  const store = storeWith(policy({ validations: [{ expression, message: 'not yours' }] }), binding(['Deny']));
  const rbac = (plural: string) => bucketOf(builtinResource('rbac.authorization.k8s.io', plural));
  const metadata = { name: 'r', namespace: 'default' };
  store.put(rbac('roles'), { metadata, rules } as unknown as StoredObject);
  const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }];
  const roleRef = { kind: 'Role', name: 'r' };
  store.put(rbac('rolebindings'), { metadata, roleRef, subjects } as unknown as StoredObject);
  const admitted = createAdmission(store)(request({}));
  await (may ? expect(admitted).resolves.toBeUndefined() : expect(admitted).rejects.toThrow('not yours'));
});

function rule(verb: string, resourceNames: readonly string[]): JsonObject {
  return { apiGroups: [''], resources: ['secrets'], resourceNames, verbs: [verb] };
}

test('what only warns lets through, and so does a policy without a binding', async () => {
  const never = policy({ validations: [{ expression: 'false' }] });
  await createAdmission(storeWith(never, binding(['Warn'])))(request({}));
  await createAdmission(storeWith(never))(request({}));
  await expect(createAdmission(storeWith(never, binding(['Deny'])))(request({}))).rejects.toThrow(
    'failed expression: false',
  );
});

test('each validation that fails is a warning, and one that can not be evaluated hides no other', async () => {
  const warnings: string[] = [];
  const several = policy({
    failurePolicy: 'Ignore',
    validations: [
      { expression: 'false', message: 'a' },
      { expression: 'object.spec.x > 1' },
      { expression: 'true' },
      { expression: 'false', message: 'b' },
    ],
  });
  const warn = (text: string) => warnings.push(text);
  await createAdmission(storeWith(several, binding(['Warn'])))({ ...request({}), warn });
  expect(warnings).toEqual([expect.stringMatching(/: a$/), expect.stringMatching(/: b$/)]);
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

test('a policy with parameters is evaluated for each of those that its binding names', async () => {
  const warned = async (paramRef: JsonObject, kind = 'Widget') => {
    const given = policy({
      paramKind: { apiVersion: 'example.dev/v1', kind },
      validations: [{ expression: 'params.most > 3', messageExpression: "'by ' + params.metadata.name" }],
    });
    const bound = binding(['Warn']);
    const store = storeWith(given, { ...bound, spec: { ...(bound['spec'] as JsonObject), paramRef } });
    for (const [name, most, tier] of [
      ['a', 1, 'x'],
      ['b', 9, 'x'],
      ['c', 2, 'y'],
    ] as const)
      store.put(bucketOf(WIDGETS), { metadata: { name, labels: { tier } }, most } as unknown as StoredObject);
    const warnings: string[] = [];
    const ofKind = (_version: string, asked: string) => (asked === 'Widget' ? WIDGETS : undefined);
    await createAdmission(store, ofKind)({ ...request({}), warn: (text) => warnings.push(text) });
    return warnings.map((text) => text.replace(/^.*: /, ''));
  };
  expect(await warned({ selector: {} })).toEqual(['by a', 'by c']);
  expect(await warned({ selector: { matchLabels: { tier: 'y' } } })).toEqual(['by c']);
  expect(await warned({ name: 'a' })).toEqual(['by a']);
  expect(await warned({ name: 'gone', parameterNotFoundAction: 'Allow' })).toEqual([]);
  expect(await warned({ selector: {} }, 'Unknown')).toEqual([]);
});

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

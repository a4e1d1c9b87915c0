import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAdmission } from '../../sandbox/apiserver/admission/admission.ts';
import { compilePolicy, evaluatePolicy } from '../../sandbox/apiserver/admission/validating-policy.ts';
import { ADMIN, serviceAccountUser } from '../../sandbox/apiserver/identity/user.ts';
import type { JsonObject } from '../../sandbox/apiserver/json.ts';
import type { AdmissionRequest } from '../../sandbox/apiserver/objects/object-context.ts';
import { builtinResource } from '../../sandbox/apiserver/resources/builtin.ts';
import { bucketOf, type Resource } from '../../sandbox/apiserver/resources/resource.ts';
import { createStore } from '../../sandbox/apiserver/store/store.ts';
import type { StoredObject } from '../../sandbox/apiserver/stored-object.ts';
import { readKustomization } from '../../sandbox/manifests/kustomization.ts';

const COMPONENT = path.join(import.meta.dirname, '../../manifests/components/admission-policies');
const policies = (await readKustomization(COMPONENT)) as unknown as StoredObject[];

const NODES = builtinResource('', 'nodes');
const custom = (group: string, kind: string): Resource => ({
  ...NODES,
  group,
  kind,
  plural: `${kind.toLowerCase()}s`,
});
const MACHINE_CONFIGS = custom('machineconfiguration.openshift.io', 'MachineConfig');
const MACHINE_CONFIGURATIONS = custom('operator.openshift.io', 'MachineConfiguration');
const operator = serviceAccountUser('shale-system', 'shale-operator');
const collector = serviceAccountUser('kube-system', 'generic-garbage-collector');

/** Holds a request against every policy of the component that denies. */
async function admit(request: Partial<AdmissionRequest> & { resource: Resource; object: JsonObject }) {
  const store = createStore();
  for (const object of policies) {
    const plural = `${String(object['kind']).replace(/y$/, 'ie').toLowerCase()}s`;
    store.put(bucketOf(builtinResource('admissionregistration.k8s.io', plural)), object);
  }
  const name = String((request.object['metadata'] as JsonObject)['name']);
  await createAdmission(store)({
    operation: 'CREATE',
    subresource: '',
    namespace: '',
    name,
    user: ADMIN,
    ...request,
  });
}

const stored = (metadata: JsonObject, spec: JsonObject): StoredObject =>
  ({ apiVersion: 'v1', kind: 'X', metadata, spec }) as unknown as StoredObject;
const machineConfig = (spec: JsonObject, name = '50-a', annotations?: JsonObject): StoredObject =>
  stored({ name, ...(annotations === undefined ? {} : { annotations }) }, spec);
const ignition = (rest: JsonObject, version = '3.4.0'): JsonObject => ({
  config: { ignition: { version }, ...rest },
});

describe('MachineConfigs', () => {
  test.each<[string, JsonObject]>([
    ['kernel arguments alone', { kernelArguments: ['quiet'] }],
    ['a null config', { config: null }],
    ['an old version', ignition({}, '2.2.0')],
    [
      'files, directories and links',
      ignition({
        storage: {
          files: [{ path: '/etc/a..b' }],
          directories: [{ path: '/etc/c' }],
          links: [{ path: '/etc/d', target: '../e' }],
        },
      }),
    ],
    [
      'units',
      ignition({ systemd: { units: [{ name: 'getty@tty1.service' }, { name: 'var-lib\\x2dx.mount' }] } }),
    ],
  ])('with %s are let through', async (_, spec) => {
    await expect(admit({ resource: MACHINE_CONFIGS, object: machineConfig(spec) })).resolves.toBeUndefined();
  });

  test.each<[string, JsonObject, string]>([
    ['a version that is not known', ignition({}, '3.6.0'), 'ignition.version must be'],
    ['no version', { config: { storage: {} } }, 'ignition.version must be'],
    ['a relative path', ignition({ storage: { files: [{ path: 'etc/a' }] } }), 'the path of a file'],
    ['a path that climbs', ignition({ storage: { files: [{ path: '/etc/../a' }] } }), "no '..'"],
    ['a directory that climbs', ignition({ storage: { directories: [{ path: '/etc/..' }] } }), 'a directory'],
    ['a link that climbs', ignition({ storage: { links: [{ path: '/../a', target: 'b' }] } }), 'a link'],
    ['a unit in another directory', ignition({ systemd: { units: [{ name: '../a.service' }] } }), 'a unit'],
    ['a unit of no type', ignition({ systemd: { units: [{ name: 'chronyd' }] } }), 'a unit'],
  ])('with %s are refused', async (_, spec, message) => {
    const refused = admit({ resource: MACHINE_CONFIGS, object: machineConfig(spec) });
    await expect(refused).rejects.toMatchObject({ code: 422, message: expect.stringContaining(message) });
  });
});

describe('rendered configs', () => {
  const rendered = machineConfig(ignition({}), 'rendered-worker-1', { 'shale.dev/transitions': '[]' });

  test('are made and changed by the operator', async () => {
    await admit({ resource: MACHINE_CONFIGS, object: rendered, user: operator });
    const oldObject = machineConfig({}, 'rendered-worker-1');
    await admit({
      resource: MACHINE_CONFIGS,
      object: rendered,
      oldObject,
      operation: 'UPDATE',
      user: operator,
    });
  });

  test('are made by nobody else', async () => {
    const refused = admit({ resource: MACHINE_CONFIGS, object: rendered });
    await expect(refused).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining("Shale's operator"),
    });
  });

  test.each<[string, JsonObject]>([
    ['their content', { ...rendered, spec: ignition({ storage: {} }) }],
    ['what is computed ahead on them', { ...rendered, metadata: { name: 'rendered-worker-1' } }],
  ])('are not changed in %s', async (_, object) => {
    const update = { resource: MACHINE_CONFIGS, object, oldObject: rendered, operation: 'UPDATE' } as const;
    await expect(admit(update)).rejects.toMatchObject({ code: 403 });
  });

  test('lose an owner to the garbage collector', async () => {
    const object = { ...rendered, metadata: { ...rendered.metadata, ownerReferences: [] } };
    await admit({
      resource: MACHINE_CONFIGS,
      object,
      oldObject: rendered,
      operation: 'UPDATE',
      user: collector,
    });
  });
});

test('there is one MachineConfiguration', async () => {
  await admit({ resource: MACHINE_CONFIGURATIONS, object: { metadata: { name: 'cluster' } } });
  await expect(
    admit({ resource: MACHINE_CONFIGURATIONS, object: { metadata: { name: 'other' } } }),
  ).rejects.toMatchObject({ message: expect.stringContaining('it is called cluster') });
});

describe('a node that Shale is updating', () => {
  const held = compilePolicy(
    policies.find(({ metadata }) => metadata.name === 'shale-held-nodes') as StoredObject,
  );
  const node = (unschedulable: boolean, annotations: JsonObject = { 'shale.dev/cordoned': 'true' }) =>
    stored({ name: 'worker-0', annotations }, { unschedulable });
  const warning = (request: Partial<AdmissionRequest>) =>
    evaluatePolicy(
      held,
      {
        operation: 'UPDATE',
        resource: NODES,
        subresource: '',
        namespace: '',
        name: 'worker-0',
        user: ADMIN,
        ...request,
      },
      undefined,
    )?.message;

  test('is only warned of', () => {
    const binding = policies.find(
      ({ metadata, kind }) => metadata.name === 'shale-held-nodes' && String(kind).endsWith('Binding'),
    );
    expect(binding?.['spec']).toMatchObject({ validationActions: ['Warn'] });
  });

  test.each<[string, Partial<AdmissionRequest>]>([
    ['uncordoned', { oldObject: node(true), object: node(false) }],
    ['deleted', { oldObject: node(true), operation: 'DELETE' }],
  ])('and is %s', (_, request) => {
    expect(warning(request)).toContain('Shale is updating node worker-0');
  });

  test.each<[string, Partial<AdmissionRequest>]>([
    ['labelled', { oldObject: node(true), object: node(true) }],
    ['uncordoned by the operator', { oldObject: node(true), object: node(false), user: operator }],
    ['no longer held', { oldObject: node(true, {}), object: node(false, {}) }],
  ])('and is %s, without a warning', (_, request) => {
    expect(warning(request)).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import {
  canUpdateMachineRequest,
  canUpdateMachineSetRequest,
  updateMachineRequest,
} from '../../test/fixtures/capi/hook-requests.ts';
import { everything, machineObjects } from '../../test/fixtures/capi/machine-objects.ts';
import { documentedPaths, documentedSchema } from '../../test/fixtures/capi/runtime-sdk.ts';
import type { CanUpdateAnswer, UpdateMachineAnswer } from './answers.ts';
import { DISCOVERY_PATH, discoveryResponse, HOOKS, type Hook, pathOf } from './hooks.ts';
import { NotUnderstood } from './not-understood.ts';
import { readCanUpdateMachine, readCanUpdateMachineSet, readUpdateMachine } from './requests.ts';
import { canUpdateResponse, updateMachineResponse } from './responses.ts';
import { readMachineSettings } from './settings.ts';

const current = machineObjects({
  bootstrap: { ntp: { servers: ['a.example'] } },
  infrastructure: { image: 'v1' },
});
const desired = machineObjects({ machine: { version: 'v1.35.1' }, infrastructure: { image: 'v2' } });

/** The path of Cluster API's document, where a handler's name is a parameter. */
const documented = (hook: Hook) => pathOf(hook).replace(/[^/]+$/, '{name}');

test('the paths are those of Cluster API, of discovery and of each hook with a handler name', () => {
  expect([DISCOVERY_PATH, ...HOOKS.map(documented)].toSorted()).toEqual([...documentedPaths].toSorted());
});

test('discovery names every hook with its handler, and is as documented', () => {
  const response = discoveryResponse();
  documentedSchema(DISCOVERY_PATH, 'response').parse(response);
  expect(response.handlers.map(({ name, requestHook }) => [name, requestHook.hook])).toEqual([
    ['can-update-machine', 'CanUpdateMachine'],
    ['can-update-machine-set', 'CanUpdateMachineSet'],
    ['update-machine', 'UpdateMachine'],
  ]);
  // What internal/runtime/client requires beyond the document.
  for (const { name, timeoutSeconds, failurePolicy } of response.handlers) {
    expect(name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    expect({ timeoutSeconds, failurePolicy }).toEqual({ timeoutSeconds: 10, failurePolicy: 'Fail' });
  }
});

describe('requests as documented', () => {
  test('CanUpdateMachineSet', () => {
    const body = canUpdateMachineSetRequest(current, desired);
    documentedSchema(documented('CanUpdateMachineSet'), 'request').parse(body);
    const request = readCanUpdateMachineSet(body);
    expect(request).toMatchObject({
      cluster: { namespace: 'default', name: 'one' },
      owner: { kind: 'MachineDeployment', namespace: 'default', name: 'workers' },
      settings: everything,
    });
    expect(request.current).toMatchObject(current);
    expect(request.desired).toMatchObject(desired);
  });

  test('CanUpdateMachine', () => {
    const body = canUpdateMachineRequest(current, desired);
    documentedSchema(documented('CanUpdateMachine'), 'request').parse(body);
    const request = readCanUpdateMachine(body);
    expect(request.owner).toEqual({ kind: 'KubeadmControlPlane', namespace: 'default', name: 'plane' });
    expect(request.current).toMatchObject(current);
    expect(request.desired).toMatchObject(desired);
  });

  test('UpdateMachine', () => {
    const body = updateMachineRequest(desired);
    documentedSchema(documented('UpdateMachine'), 'request').parse(body);
    const request = readUpdateMachine(body);
    expect(request).toMatchObject({
      cluster: { namespace: 'default', name: 'one' },
      machine: { namespace: 'default', name: 'workers-a-x' },
      owner: { kind: 'MachineDeployment', namespace: 'default', name: 'workers' },
    });
    expect(request.desired).toMatchObject(desired);
  });

  test('machines without a bootstrap config', () => {
    const bare = { ...current, bootstrap: undefined };
    expect(readUpdateMachine(updateMachineRequest(bare)).desired.bootstrap).toBeUndefined();
    expect(readCanUpdateMachineSet(canUpdateMachineSetRequest(bare, bare)).current.bootstrap).toBeUndefined();
  });

  test('machines of another owner', () => {
    const body = updateMachineRequest(desired);
    const { metadata } = body.desired.machine;
    const machine = { ...body.desired.machine, metadata: { ...metadata, labels: {} } };
    expect(readUpdateMachine({ ...body, desired: { ...body.desired, machine } }).owner).toBeUndefined();
  });
});

const patches = { machine: '{"spec":{"version":"v1.35.1"}}', bootstrap: '{}', infrastructure: undefined };
const CAN_UPDATE: readonly CanUpdateAnswer[] = [
  { kind: 'inPlace', patches, affectsAvailability: false, message: 'live' },
  { kind: 'inPlace', patches, affectsAvailability: true, message: 'reboot' },
  { kind: 'newMachines', message: 'a' },
  { kind: 'failure', message: 'a' },
];

describe.each(['CanUpdateMachine', 'CanUpdateMachineSet'] as const)('answers to %s', (hook) => {
  const schema = documentedSchema(documented(hook), 'response');

  test.each(CAN_UPDATE)('$kind $message is as documented, beside the field of later releases', (answer) => {
    const { affectsAvailability, ...response } = canUpdateResponse(hook, answer);
    schema.parse(response);
    expect(affectsAvailability).toBe(answer.kind === 'inPlace' ? answer.affectsAvailability : undefined);
    expect(response.status).toBe(answer.kind === 'failure' ? 'Failure' : 'Success');
  });

  test('the document of v1.14.2 does not have that field', () => {
    const [answer] = CAN_UPDATE;
    expect(answer && schema.safeParse(canUpdateResponse(hook, answer)).error?.issues).toMatchObject([
      { code: 'unrecognized_keys', keys: ['affectsAvailability'] },
    ]);
  });

  test('patches are merge patches in base64, in the fields of this hook', () => {
    const [answer] = CAN_UPDATE;
    const { status, message, apiVersion, kind, affectsAvailability, ...fields } =
      answer === undefined ? expect.fail() : canUpdateResponse(hook, answer);
    expect(Object.keys(fields)).toEqual(
      hook === 'CanUpdateMachine'
        ? ['machinePatch', 'bootstrapConfigPatch']
        : ['machineSetPatch', 'bootstrapConfigTemplatePatch'],
    );
    expect(Object.values(fields)[0]).toEqual({
      patchType: 'JSONMergePatch',
      patch: Buffer.from(patches.machine).toString('base64'),
    });
  });
});

test.each<[UpdateMachineAnswer, string, number]>([
  [{ kind: 'done', message: 'a' }, 'Success', 0],
  [{ kind: 'inProgress', retryAfterSeconds: 15, message: 'a' }, 'Success', 15],
  [{ kind: 'inProgress', retryAfterSeconds: 0, message: 'never done by accident' }, 'Success', 1],
  [{ kind: 'failure', message: 'a' }, 'Failure', 0],
])('answer to UpdateMachine: %o', (answer, status, retryAfterSeconds) => {
  const response = updateMachineResponse(answer);
  documentedSchema(documented('UpdateMachine'), 'response').parse(response);
  expect(response).toMatchObject({ status, retryAfterSeconds });
});

test.each<[string, () => unknown, string]>([
  ['nothing', () => readUpdateMachine(undefined), 'UpdateMachineRequest: expected object'],
  [
    'a Machine without a Cluster',
    () => readUpdateMachine(updateMachineRequest({ ...desired, machine: { clusterName: '' } })),
    'spec of the Machine: clusterName: expected it to have >=1 characters',
  ],
  [
    'an image without its repository',
    () => readMachineSettings({ imagePath: 'spec.image' }),
    'spec.settings of the ExtensionConfig: imagePath and imageRepository are only of use together; set both or none',
  ],
  [
    'a path that is none',
    () => readMachineSettings({ ntpFile: 'chrony.conf' }),
    'spec.settings of the ExtensionConfig: ntpFile: expected an absolute path',
  ],
])('is not understood: %s', (_what, read, message) => {
  expect(read).toThrow(new NotUnderstood(message));
});

test('the path of an image is the same in a template and in a machine', () => {
  const imageRepository = 'registry.example/os';
  const paths = ['spec.template.spec.disk.image', 'spec.disk.image'].map(
    (imagePath) => readMachineSettings({ imagePath, imageRepository }).imagePath,
  );
  expect(paths).toEqual([
    ['disk', 'image'],
    ['disk', 'image'],
  ]);
});

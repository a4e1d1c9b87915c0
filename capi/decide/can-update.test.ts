import { describe, expect, test } from 'vitest';
import { formatRebootRequest } from '../../api/annotation-requests.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOwner } from '../../api/machine-owner.ts';
import { annotations, labels } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { machineConfig } from '../../machineconfig/testdata/build.ts';
import { everything, machineObjects } from '../../test/fixtures/capi/machine-objects.ts';
import { base, drivenBy, workers, workload } from '../../test/fixtures/capi/workload.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aPool,
  aSuccess,
  condition,
  image,
} from '../../test/fixtures/objects.ts';
import { files } from '../../test/fixtures/rendering.ts';
import type { JsonObject } from '../contract/machine-objects.ts';
import { ownedConfigName } from '../mapping/owned-config.ts';
import { changedParts } from '../mapping/part-changes.ts';
import { machinePartsOf } from '../mapping/parts-of.ts';
import { patchesBetween } from '../mapping/patches.ts';
import { canUpdate, refusedAtOnce } from './can-update.ts';
import type { OlderParts } from './owned-now.ts';
import type { WorkloadState } from './workload-state.ts';

type Objects = Parameters<typeof machineObjects>[0];
const plane = { kind: 'KubeadmControlPlane', namespace: 'default', name: 'plane' } as const;

function answerTo(
  before: Objects,
  after: Objects,
  state: WorkloadState = workload(),
  {
    owner = workers,
    others = [],
  }: { readonly owner?: MachineOwner; readonly others?: readonly OlderParts[] } = {},
) {
  const [from, to] = [machineObjects(before), machineObjects(after)];
  const desired = machinePartsOf(to, everything);
  const changes = changedParts(machinePartsOf(from, everything), desired);
  const patches = patchesBetween(from, to, everything, 'template');
  return (
    refusedAtOnce(owner, changes) ??
    canUpdate({ owner, changes, desired, others, patches, settings: everything }, state)
  );
}

const file = (path: string, more: JsonObject = {}) => ({
  bootstrap: { files: [{ path, content: 'a\n', ...more }] },
});

test('a file that changes live is changed in place without a word to pods', () => {
  expect(answerTo({}, file('/etc/live'))).toEqual({
    kind: 'inPlace',
    patches: {
      machine: undefined,
      bootstrap: '{"spec":{"template":{"spec":{"files":[{"content":"a\\n","path":"/etc/live"}]}}}}',
      infrastructure: undefined,
    },
    affectsAvailability: false,
    message:
      'file /etc/live in place on 2 nodes of MachineConfigPool worker; no pod is affected: files change and nothing else happens',
  });
});

const streams: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'os-image-streams', namespace: 'shale-system' },
  data: { 'v1.35.1': image('5'), '1.34.0': image('4') },
} as KubernetesObject;
const withStreams = () => workload([drivenBy(), streams]);
const unmanaged = {
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster' },
  spec: {
    managementState: 'Unmanaged',
    nodeDisruptionPolicy: { files: [{ path: '/etc/live', actions: [{ type: 'None' }] }] },
  },
} as KubernetesObject;
const digest = `sha256:${'a'.repeat(64)}`;
const layered = {
  ...aMachineOSConfig('worker'),
  spec: { ...aMachineOSConfig('worker').spec, baseImage: image('1') },
};

/** @returns a workload cluster with a request to reboot a node. */
function withRebootOf(name: string, bootID: string): WorkloadState {
  const state = workload([drivenBy()], { bootID: 'this boot' });
  const request = formatRebootRequest({ bootID, by: '', reason: '', at: '' });
  const machineConfigNodes = state.machineConfigNodes.map((node) =>
    node.metadata.name === name
      ? { ...node, metadata: { ...node.metadata, annotations: { [annotations.reboot]: request } } }
      : node,
  );
  return { ...state, machineConfigNodes };
}

describe('affectsAvailability', () => {
  test('a reboot that was requested of an earlier boot is over', () => {
    const answer = answerTo({}, file('/etc/live'), withRebootOf('worker-1', 'an earlier boot'));
    expect(answer).toMatchObject({ kind: 'inPlace', affectsAvailability: false });
  });

  test.each<[string, Objects, boolean]>([
    ['nothing to do', file('/etc/live', { owner: 'root' }), false],
    ['a reload', file('/etc/reload'), false],
    ['a restart that the admin names', file('/etc/restart'), false],
    ['servers of ntp', { bootstrap: { ntp: { servers: ['a.example'] } } }, false],
    ['a drain', file('/etc/drain'), true],
    ['a file of no policy', file('/etc/motd'), true],
  ])('%s', (_what, after, affects) => {
    expect(answerTo({}, after)).toMatchObject({ kind: 'inPlace', affectsAvailability: affects });
  });

  test.each<[string, Objects, WorkloadState, string]>([
    ['a drain', file('/etc/drain'), workload(), 'nodes need a drain'],
    ['a reboot', file('/etc/motd'), workload(), 'nodes need a reboot'],
    ['a stream', { machine: { version: 'v1.35.1' } }, withStreams(), 'nodes need a reboot'],
    ['an image', { infrastructure: { image: digest } }, workload(), 'nodes need a reboot'],
    [
      'a node that has not reported',
      file('/etc/live'),
      workload([drivenBy()], { configVersion: { current: '', desired: 'a' } }),
      'nodes need a reboot',
    ],
    [
      'a node that is still on its way to a reboot',
      file('/etc/live'),
      workload([drivenBy()], { configVersion: { current: 'rendered-worker-old', desired: 'a' } }),
      'nodes need a reboot',
    ],
    [
      'a node whose requested reboot waits to be handed over',
      file('/etc/live'),
      withRebootOf('worker-1', 'this boot'),
      'more than this change is due: a reboot of node worker-1 is requested',
    ],
    [
      'a node that has failed',
      file('/etc/live'),
      workload([drivenBy()], { conditions: [condition('NodeDegraded', 'True')] }),
      'more than this change is due: node worker-0 has failed; node worker-1 has failed',
    ],
    [
      'an object that can not be read',
      file('/etc/live'),
      workload([
        drivenBy(),
        { ...base, metadata: { name: '99-broken' }, spec: { kernelArguments: 1 } } as KubernetesObject,
      ]),
      'objects of the workload cluster can not be read: MachineConfig 99-broken',
    ],
    [
      'a cluster whose rollouts are suspended',
      file('/etc/live'),
      workload([drivenBy(), unmanaged]),
      'the prediction has warnings',
    ],
  ])('is true for %s, and says why', (_what, after, state, why) => {
    const infrastructure = after?.infrastructure && { image: 'v1' };
    const answer = answerTo(infrastructure ? { infrastructure } : {}, after, state);
    expect(answer).toMatchObject({ kind: 'inPlace', affectsAvailability: true });
    expect(answer.message).toContain(`pods may be affected, because ${why}`);
  });
});

describe('affectsAvailability of a layered pool whose files change live', () => {
  const status = {
    mode: 'Layered',
    baseImage: image('1'),
    configImage: { currentImage: image('9'), desiredImage: image('9') },
  } as const;
  const build = {
    ...aBuild('worker-1', 'rendered-worker-1', { status: aSuccess('9', 'Append', image('1')) }),
  };
  const state = (...builds: MachineOSBuild[]) => workload([drivenBy(), layered], status, { builds });

  test('is false where the builds of all running images are known', () => {
    expect(answerTo({}, file('/etc/live'), state(build))).toMatchObject({
      kind: 'inPlace',
      affectsAvailability: false,
    });
  });

  test.each<[string, WorkloadState]>([
    ['there is no build', state()],
    ['its build has not succeeded', state(aBuild('worker-1', 'rendered-worker-1'))],
    ['only another image was built', state(aBuild('a', 'rendered-worker-1', { status: aSuccess('8') }))],
  ])('is true where %s', (_what, observed) => {
    const answer = answerTo({}, file('/etc/live'), observed);
    expect(answer).toMatchObject({ kind: 'inPlace', affectsAvailability: true });
    expect(answer.message).toContain('no build is known of the image that nodes run: worker-0; worker-1');
  });
});

describe('replaces nothing for what an admin has to put right', () => {
  const stopped = (spec: object, own: Record<string, string> = {}) => {
    const pool = drivenBy();
    return { ...pool, metadata: { ...pool.metadata, annotations: own }, spec: { ...pool.spec, ...spec } };
  };

  test.each<[string, WorkloadState, string]>([
    [
      'a MachineConfig of the owner that somebody has changed',
      workload([
        drivenBy(),
        machineConfig(ownedConfigName('worker'), { ignition: { version: '3.5.0' }, storage: { files: 1 } }),
      ]),
      "MachineConfig 50-cluster-api-worker has something that the extension doesn't write",
    ],
    ['a paused pool', workload([stopped({ paused: true })]), 'MachineConfigPool worker is paused'],
    [
      'a pool that is rolled back',
      workload([stopped({}, { [annotations.rollback]: '{}' })]),
      'MachineConfigPool worker is rolled back and stays there',
    ],
  ])('%s', (_what, state, why) => {
    const answer = answerTo({}, file('/etc/live'), state);
    expect(answer.kind).toBe('failure');
    expect(answer.message).toContain(why);
  });
});

/** As MCO documents custom pools. */
const inheriting = {
  ...aPool('infra'),
  spec: {
    ...aPool('infra').spec,
    machineConfigSelector: {
      matchExpressions: [{ key: labels.role, operator: 'In', values: ['worker', 'infra'] }],
    },
  },
} as KubernetesObject;
const twoWorkers = () => workload().machineConfigNodes;
const inInfra = aMachineConfigNode('infra-0', { pool: { name: 'infra' } });

test('a pool that inherits and has no nodes is no reason to replace machines', () => {
  expect(answerTo({}, file('/etc/live'), workload([drivenBy(), inheriting]))).toMatchObject({
    kind: 'inPlace',
  });
});

describe('needs new machines, and says why', () => {
  test('a version whose kubelet an image brings that stays', () => {
    const owned = machineConfig(ownedConfigName('worker'), undefined, {
      osImageURL: `registry.example/os@${digest}`,
    });
    const infrastructure = { image: digest };
    const answer = answerTo(
      { infrastructure },
      { infrastructure, machine: { version: 'v1.35.1' } },
      workload([drivenBy(), streams, owned]),
    );
    expect(answer.message).toBe(
      'new machines are needed: Machine spec.version: the image of the infrastructure machine brings the kubelet, and it stays the same',
    );
  });

  test.each<[string, Objects, WorkloadState, string]>([
    [
      'a change that no machine can take',
      { bootstrap: { mounts: [['a']] } },
      workload(),
      'KubeadmConfig spec.mounts: Shale can not change it on a machine',
    ],
    [
      'a pool that nobody named',
      file('/etc/live'),
      workload([drivenBy(plane)]),
      'no MachineConfigPool names MachineDeployment default/workers in spec.shale.drivenBy',
    ],
    [
      'two pools of one owner',
      file('/etc/live'),
      workload([drivenBy(), drivenBy(workers, 'other')]),
      'the MachineConfigPools other and worker name MachineDeployment default/workers in spec.shale.drivenBy; one of them may',
    ],
    [
      'a pool without nodes',
      file('/etc/live'),
      workload([drivenBy()], {}, { machineConfigNodes: [] }),
      'MachineConfigPool worker has no nodes',
    ],
    [
      'a version without an image',
      { machine: { version: 'v1.35.2' } },
      workload([drivenBy(), streams], {}, { serverVersion: 'v1.35.2' }),
      'the ConfigMap os-image-streams of the workload cluster has no image for v1.35.2',
    ],
    [
      'a kubelet newer than the API server',
      { machine: { version: 'v1.36.0' } },
      withStreams(),
      'a kubelet v1.36.0 is newer than the API server, which is v1.35.1; upgrade the control plane first',
    ],
    [
      'a pool that inherits and has nodes',
      file('/etc/live'),
      workload([drivenBy(), inheriting], {}, { machineConfigNodes: [...twoWorkers(), inInfra] }),
      'the nodes of infra would change as well, because that pool inherits from worker',
    ],
    [
      'a pool that inherits the stream',
      { machine: { version: 'v1.35.1' } },
      workload([drivenBy(), streams, inheriting], {}, { machineConfigNodes: [...twoWorkers(), inInfra] }),
      'the nodes of infra would change as well, because that pool inherits from worker',
    ],
    [
      'a file that another MachineConfig has, too',
      file('/etc/live'),
      workload([
        drivenBy(),
        machineConfig('99-live', files({ path: '/etc/live', contents: { source: 'data:,b' } })),
      ]),
      'MachineConfig 99-live overrides /etc/live',
    ],
    [
      'a pool that does not select the MachineConfig',
      file('/etc/live'),
      workload([
        {
          ...drivenBy(),
          spec: { ...drivenBy().spec, machineConfigSelector: { matchLabels: { a: 'b' } } },
        } as KubernetesObject,
        { ...base, metadata: { name: '01-b', labels: { a: 'b' } } },
      ]),
      'the machineConfigSelector of the pool does not select MachineConfig 50-cluster-api-worker',
    ],
    [
      'a path that no image can hold',
      file('/etc/passwd'),
      workload([drivenBy(), layered]),
      'MachineConfigPool worker: ',
    ],
    [
      'a host that is not supported',
      file('/etc/live'),
      workload([drivenBy()], {
        conditions: [
          {
            type: 'NodeDegraded',
            status: 'True',
            reason: 'UnsupportedHost',
            message: 'it has no ostree',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
      }),
      'node worker-0 keeps what it runs: it has no ostree; node worker-1 keeps what it runs: it has no ostree',
    ],
  ])('%s', (_what, after, state, why) => {
    const answer = answerTo({}, after, state);
    expect(answer.message).toMatch(/^new machines are needed: /);
    expect(answer.message).toContain(why);
    expect(answer.kind).toBe('newMachines');
  });

  test('the version of a control plane', () => {
    const [from, to] = [machineObjects(), machineObjects({ machine: { version: 'v1.35.1' } })];
    const changes = changedParts(machinePartsOf(from, everything), machinePartsOf(to, everything));
    expect(refusedAtOnce(plane, changes)?.message).toBe(
      "new machines are needed: Machine spec.version: the version of a control plane is kubeadm's to upgrade",
    );
    expect(refusedAtOnce(workers, changes)).toBeUndefined();
  });
});

test('the same question has the same answer', () => {
  const after = {
    bootstrap: { files: [{ path: '/etc/live' }, { path: '/etc/motd' }] },
    machine: { version: 'v1.35.1' },
  };
  const ask = () => answerTo({}, after, withStreams());
  expect(JSON.stringify(ask())).toBe(JSON.stringify(ask()));
});

describe('a Machine of a control plane', () => {
  const ofPlane = workload([drivenBy(plane)]);
  const has = (objects: Objects): OlderParts => ({
    kind: 'known',
    parts: machinePartsOf(machineObjects(objects), everything),
  });
  const alone = { kind: 'gone', why: 'there is no other one' } as const;

  test.each<[string, readonly OlderParts[], RegExp | undefined]>([
    ['another one has what it has', [has({}), has(file('/etc/live'))], undefined],
    ['there is no other one', [alone], /there is no other one, so nobody can tell whether file \/etc\/live/],
    ['every other one was replaced', [has(file('/etc/live'))], /has the new state, so nobody could tell/],
  ])('where %s', (_, others, why) => {
    const answer = answerTo({}, file('/etc/live'), ofPlane, { owner: plane, others });
    expect(answer.kind).toBe(why === undefined ? 'inPlace' : 'newMachines');
    if (why !== undefined) expect(answer.message).toMatch(why);
  });
});

import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { PinnedImageSet } from '../api/pinned-image-set.ts';
import { present } from '../api/present.ts';
import { pinnedImageSetsOf, pinnedImagesRequest } from './pinned-image-sets.ts';

const ROLE = 'machineconfiguration.openshift.io/role';

function aSet(name: string, role?: string, generation?: number): PinnedImageSet {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'PinnedImageSet',
    metadata: {
      name,
      ...(role === undefined ? {} : { labels: { [ROLE]: role } }),
      ...present({ generation }),
    },
    spec: { pinnedImages: [{ name: `registry.example.com/a@sha256:${'a'.repeat(64)}` }] },
  };
}

function aPool(spec: MachineConfigPool['spec'], containerRuntime?: 'cri-o'): MachineConfigPool {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name: 'worker' },
    spec: { ...spec, shale: present({ containerRuntime }) },
  };
}

const selector = { matchExpressions: [{ key: ROLE, operator: 'In' as const, values: ['worker', 'infra'] }] };
const all = [aSet('z', 'worker', 4), aSet('b', 'infra'), aSet('m', 'master'), aSet('free')];

test('a pool has the sets that it names, then those that its selector selects, each once', () => {
  const { sets, missing } = pinnedImageSetsOf(
    aPool({
      machineConfigSelector: selector,
      pinnedImageSets: [{ name: 'free' }, { name: 'gone' }, { name: 'z' }],
    }),
    all,
  );
  expect(sets.map(({ metadata }) => metadata.name)).toEqual(['free', 'z', 'b']);
  expect(missing).toEqual(['gone']);
});

test('a pool without a selector, or with an empty one, selects none', () => {
  expect(pinnedImagesRequest(aPool({}), all, 'cri-o://1.34.1')).toBeUndefined();
  expect(pinnedImagesRequest(aPool({ machineConfigSelector: {} }), all, 'cri-o://1.34.1')).toBeUndefined();
});

test('a node is asked for the generations of the sets, with its own container runtime', () => {
  const pool = aPool({ machineConfigSelector: selector });
  expect(pinnedImagesRequest(pool, all, 'containerd://2.1.4')).toEqual({
    sets: [
      { name: 'b', generation: 1 },
      { name: 'z', generation: 4 },
    ],
    containerRuntime: 'containerd',
  });
  const stated = aPool({ machineConfigSelector: selector }, 'cri-o');
  expect(pinnedImagesRequest(stated, all, undefined)?.containerRuntime).toBe('cri-o');
});

test.each([
  [undefined, 'no node has reported its container runtime yet'],
  ['docker://20.10', 'its nodes run docker'],
])('with the runtime %s the request says what is missing', (version, problem) => {
  const request = pinnedImagesRequest(aPool({ pinnedImageSets: [{ name: 'free' }] }), all, version);
  expect(request?.containerRuntime).toBeUndefined();
  expect(request?.problem).toContain(problem);
});

test('a set that is named and does not exist is a problem of the request', () => {
  const request = pinnedImagesRequest(aPool({ pinnedImageSets: [{ name: 'gone' }] }), all, 'cri-o://1.34.1');
  expect(request).toEqual({
    sets: [],
    containerRuntime: 'cri-o',
    problem: 'PinnedImageSet gone of spec.pinnedImageSets does not exist',
  });
});

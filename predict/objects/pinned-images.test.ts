import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { formatPlan } from '../../cli/plan/plan-text.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { planned as planOf } from '../../test/fixtures/planned.ts';
import { changedCluster, offlineCluster } from './offline-cluster.ts';

const set = (name: string, images: readonly string[]) =>
  ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'PinnedImageSet',
    metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      pinnedImages: images.map((image) => ({ name: `r.example.org/${image}@sha256:${'0'.repeat(64)}` })),
    },
  }) as KubernetesObject;

function planned(before: readonly KubernetesObject[], change: readonly KubernetesObject[]): string {
  const objects = [aPool('worker'), ...before];
  const plans = planOf(offlineCluster(objects), changedCluster(objects, change, { prune: false }));
  return formatPlan(plans, { diffs: 'none' });
}

test.each<[string, KubernetesObject[], KubernetesObject[], string[]]>([
  [
    'a new set',
    [],
    [set('a', ['a', 'b'])],
    ['  pinned images: nodes pull and keep 2 images more, without an update'],
  ],
  ['the same image in another set', [set('a', ['a'])], [set('b', ['a'])], []],
  [
    'another image instead',
    [set('a', ['a'])],
    [set('a', ['b'])],
    ['  pinned images: nodes pull and keep 1 image more, without an update, and no longer keep 1 image'],
  ],
  [
    'an image less',
    [set('a', ['a', 'b'])],
    [set('a', ['b'])],
    ['  pinned images: nodes no longer keep 1 image'],
  ],
])('a plan of %s', (_name, before, change, lines) => {
  expect(planned(before, change).split('\n')).toEqual(['pool worker: no changes', ...lines]);
});

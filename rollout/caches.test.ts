import { expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import { aNode } from '../test/fixtures/objects.ts';
import { keptNode } from './caches.ts';
import { holdersOf } from './gates/gates.ts';
import { readNode } from './pools/node-state.ts';

/** A Node as a kubelet writes it. */
const full = {
  ...aNode('n', {
    metadata: {
      name: 'n',
      uid: 'u',
      resourceVersion: '1',
      labels: { 'topology.kubernetes.io/zone': 'a' },
      annotations: { 'shale.dev/powered-off': '{}' },
      managedFields: [{ manager: 'kubelet', fieldsV1: { 'f:status': {} } }],
    } as Node['metadata'],
  }),
  spec: {
    unschedulable: true,
    taints: [{ key: 'k', effect: 'NoSchedule' }],
    podCIDR: '10.0.0.0/24',
  } as NonNullable<Node['spec']>,
  status: {
    conditions: [
      { type: 'MemoryPressure', status: 'False', reason: '', message: '', lastTransitionTime: '' },
      { type: 'Ready', status: 'False', reason: '', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
    nodeInfo: { bootID: 'b', architecture: 'arm64', kernelVersion: '6.1' },
    images: [{ names: ['registry.test/image'], sizeBytes: 1 }],
    capacity: { cpu: '2' },
  } as NonNullable<Node['status']>,
};

it('keeps all that a rollout reads of a node, and nothing long', () => {
  const read = (node: Node) =>
    readNode({
      node,
      spec: { node: { name: 'n' }, pool: { name: 'p' }, configVersion: { desired: 'c' } },
      status: undefined,
      assigned: true,
      lease: { by: 'nobody' },
      inMaintenance: false,
      holders: holdersOf({ node, lease: { by: 'nobody' }, inMaintenance: false }, 0),
    });
  const kept = keptNode(full);
  expect(read(kept)).toEqual(read(full));
  expect(kept.spec?.taints).toEqual(full.spec.taints);
  expect(JSON.stringify(kept)).not.toMatch(/images|capacity|managedFields|MemoryPressure|kernelVersion/);
});

import { expect, test } from 'vitest';
import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { someSettings } from '../../test/fixtures/objects.ts';
import { assignedSpec, assignmentPatch, poolLabels, poolLabelsPatch } from './node-target.ts';
import { assignedSettings } from './pool-settings.ts';

const spec: MachineConfigNodeSpec = {
  node: { name: 'a' },
  pool: { name: 'worker' },
  configVersion: { desired: 'rendered-worker-1' },
  grant: { level: 'Disrupt', config: 'rendered-worker-1', leaseHolder: 'operator' },
};
const assignment = {
  pool: 'worker',
  target: { config: 'rendered-worker-1' },
  policyDigest: undefined,
  imageSigningKeys: undefined,
  settings: assignedSettings(someSettings()),
  irreconcilable: undefined,
};

test('a pool’s permission to reboot softly comes and goes, and takes no grant away', () => {
  expect(assignmentPatch(spec, assignment)).toBeUndefined();
  const allowed = { ...assignment, settings: assignedSettings(someSettings({ softReboot: true })) };
  expect(assignmentPatch(spec, allowed)).toEqual({ pool: { name: 'worker' }, softReboot: true });
  const soft = assignedSpec(spec, allowed);
  expect(soft).toEqual({ ...spec, softReboot: true });
  expect(assignmentPatch(soft, allowed)).toBeUndefined();
  expect(assignmentPatch(soft, assignment)).toEqual({ pool: { name: 'worker' }, softReboot: null });
  expect(assignedSpec(soft, assignment)).toEqual(spec);
});

test('the keys that images must be signed with come and go with the image, in one patch', () => {
  const target = { config: 'rendered-worker-1', image: `r.io/os@sha256:${'1'.repeat(64)}` };
  const layered = { ...assignment, target, imageSigningKeys: 'sha256:k' };
  expect(assignmentPatch(spec, layered)).toMatchObject({
    configImage: { desiredImage: target.image },
    imageSigningKeys: 'sha256:k',
  });
  const { grant: _, ...moved } = spec;
  expect(assignedSpec(spec, layered)).toEqual({
    ...moved,
    configImage: { desiredImage: target.image },
    imageSigningKeys: 'sha256:k',
  });
  const rotated = { ...layered, imageSigningKeys: 'sha256:l' };
  expect(assignmentPatch(assignedSpec(spec, layered), rotated)).toEqual({
    pool: { name: 'worker' },
    imageSigningKeys: 'sha256:l',
  });
  const back = { ...assignment, imageSigningKeys: 'sha256:k' };
  expect(assignmentPatch(assignedSpec(spec, layered), back)).toMatchObject({
    configImage: null,
    imageSigningKeys: null,
  });
  expect(assignmentPatch(spec, back)).toBeUndefined();
});

test('why a target can not be applied comes and goes with the comparison, and takes no grant away', () => {
  const held = { ...assignment, irreconcilable: 'disks' };
  expect(assignmentPatch(spec, held)).toEqual({ pool: { name: 'worker' }, irreconcilable: 'disks' });
  const holding = assignedSpec(spec, held);
  expect(holding).toEqual({ ...spec, irreconcilable: 'disks' });
  expect(assignmentPatch(holding, held)).toBeUndefined();
  expect(assignmentPatch(holding, assignment)).toEqual({ pool: { name: 'worker' }, irreconcilable: null });
  expect(assignedSpec(holding, assignment)).toEqual(spec);
});

test('who holds the node comes and goes, in the patch that brings the next target', () => {
  const held = { ...assignment, heldBy: 'its lease is held by ops' };
  const spoken = assignedSpec(spec, held);
  expect(assignmentPatch(spec, held)).toEqual({
    pool: { name: 'worker' },
    heldBy: 'its lease is held by ops',
  });
  expect(spoken).toEqual({ ...spec, heldBy: 'its lease is held by ops' });
  expect(assignmentPatch(spoken, held)).toBeUndefined();
  const next = { ...assignment, target: { config: 'rendered-worker-2' } };
  expect(assignmentPatch(spoken, next)).toMatchObject({
    heldBy: null,
    configVersion: { desired: 'rendered-worker-2' },
  });
  expect(assignedSpec(spoken, assignment)).toEqual(spec);
});

test.each([
  ['that has no label', undefined, 'worker', { 'shale.dev/pool': 'worker' }],
  ['that changes its pool', { 'shale.dev/pool': 'worker' }, 'infra', { 'shale.dev/pool': 'infra' }],
  ['whose pool is in the label', { 'shale.dev/pool': 'worker', own: 'a' }, 'worker', undefined],
  [
    'that moves to a pool whose name is no label',
    { 'shale.dev/pool': 'worker' },
    'p'.repeat(64),
    { 'shale.dev/pool': null },
  ],
  ['of a pool whose name is no label', {}, 'p'.repeat(64), undefined],
])('the labels of a node %s', (_what, labels, pool, patch) => {
  expect(poolLabelsPatch(labels === undefined ? {} : { labels }, pool)).toEqual(patch);
});

test('a new MachineConfigNode is labelled with its pool', () => {
  expect(poolLabelsPatch({ labels: poolLabels('worker') }, 'worker')).toBeUndefined();
});

test('the permission for the next boot is none of the grant’s, and goes with its target', () => {
  const target = { config: 'rendered-worker-1', image: `r.io/os@sha256:${'1'.repeat(64)}` };
  const layered = { ...assignment, target };
  const { grant: _, ...before } = assignedSpec(spec, layered);
  const armed = { ...layered, armed: true };
  expect(assignmentPatch(before, armed)).toEqual({ pool: { name: 'worker' }, nextBoot: target });
  const permitted = assignedSpec(before, armed);
  expect(permitted).toEqual({ ...before, nextBoot: target });
  expect(assignmentPatch(permitted, armed)).toBeUndefined();
  expect(assignmentPatch(permitted, layered)).toEqual({ pool: { name: 'worker' }, nextBoot: null });
  expect(assignmentPatch(permitted, { ...layered, target: { config: 'rendered-worker-2' } })).toMatchObject({
    nextBoot: null,
    grant: null,
  });
  // In standard mode a config is written to the running root: there is no image to boot.
  expect(assignmentPatch(spec, { ...assignment, armed: true })).toBeUndefined();
});

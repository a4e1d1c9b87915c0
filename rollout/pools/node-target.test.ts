import { expect, test } from 'vitest';
import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { assignedSpec, assignmentPatch } from './node-target.ts';

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
  softReboot: false,
};

test('a pool’s leave to reboot softly comes and goes, and takes no grant away', () => {
  expect(assignmentPatch(spec, assignment)).toBeUndefined();
  const allowed = { ...assignment, softReboot: true };
  expect(assignmentPatch(spec, allowed)).toEqual({ pool: { name: 'worker' }, softReboot: true });
  const soft = assignedSpec(spec, allowed);
  expect(soft).toEqual({ ...spec, softReboot: true });
  expect(assignmentPatch(soft, allowed)).toBeUndefined();
  expect(assignmentPatch(soft, assignment)).toEqual({ pool: { name: 'worker' }, softReboot: null });
  expect(assignedSpec(soft, assignment)).toEqual(spec);
});

import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { Target } from '../steps/update.ts';
import { isFor } from '../steps/update.ts';

/**
 * @returns whether the node may make the target its next boot without rebooting. A target of standard mode may not: its
 *   config is written to the running root.
 */
export function mayArm({ nextBoot }: MachineConfigNodeSpec, target: Target): boolean {
  return nextBoot !== undefined && target.mode === 'Layered' && isFor(nextBoot, target);
}

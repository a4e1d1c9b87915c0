import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { DaemonObservation } from '../steps/step.ts';
import { isFor, isGranted, leadsTo, type PreparedUpdate, reboots, type Target } from '../steps/update.ts';
import type { ArmingStep } from './armed-boot.ts';

/**
 * @returns the step that makes, or keeps, a target the next boot without a reboot; undefined where the update takes the
 *   way of any other.
 */
export function armingStep(
  update: PreparedUpdate,
  target: Target,
  { spec, journal, armed }: DaemonObservation,
): ArmingStep | undefined {
  const waits = journal === undefined && reboots(update) && !isGranted(spec, target, 'Disrupt');
  if (!waits || !mayArm(spec, target)) return undefined;
  return armed === undefined ? { kind: 'arm', update } : { kind: 'stayArmed', update, armed };
}

/**
 * @param prepared what was worked out for the target, while that is as it was.
 * @returns the step that ends an armed boot; undefined where nothing is armed, or the next boot still is what was armed
 *   and may be.
 */
export function disarmingStep(
  prepared: PreparedUpdate | undefined,
  target: Target,
  { armed, spec, bootID, nextDeployment }: DaemonObservation,
): ArmingStep | undefined {
  if (armed === undefined) return undefined;
  const staysArmed =
    mayArm(spec, target) &&
    // An ordinary update begins from what it knows.
    !isGranted(spec, target, 'Disrupt') &&
    leadsTo(armed, target) &&
    armed.bootID === bootID &&
    armed.deployment === nextDeployment &&
    prepared !== undefined;
  return staysArmed ? undefined : { kind: 'disarm' };
}

/**
 * @returns whether the node may make the target its next boot without rebooting. A target of standard mode may not: its
 *   config is written to the running root.
 */
function mayArm({ nextBoot }: MachineConfigNodeSpec, target: Target): boolean {
  return nextBoot !== undefined && target.mode === 'Layered' && isFor(nextBoot, target);
}

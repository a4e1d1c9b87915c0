import type { NodeConditionType } from '../api/machine-config-node.ts';
import type { PoolConditionType } from '../api/machine-config-pool.ts';
import type { BuildConditionType } from '../api/machine-os-build.ts';
import type { MachineOSConfigConditionType } from '../api/machine-os-config.ts';
import type { Condition } from '../api/object.ts';

type Conditions = readonly Condition[] | undefined;

/** Those of Shale's kinds, of a Node, and of the MachineConfiguration's policies. */
type ConditionType =
  | NodeConditionType
  | PoolConditionType
  | BuildConditionType
  | MachineOSConfigConditionType
  | 'Ready'
  | 'NodeDisruptionPolicyApplied';

/** @returns the condition of a type, where it is reported. */
export function conditionOf(conditions: Conditions, type: ConditionType): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** @returns the condition of a type, if it is True. */
export function trueCondition(conditions: Conditions, type: ConditionType): Condition | undefined {
  const condition = conditionOf(conditions, type);
  return condition?.status === 'True' ? condition : undefined;
}

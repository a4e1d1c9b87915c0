import type {
  ClusterPolicies,
  MachineConfiguration,
  MachineConfigurationStatus,
} from '../../api/machine-configuration.ts';
import type { Condition } from '../../api/object.ts';
import { setCondition } from '../../cluster/conditions.ts';
import { effectivePolicies, policyDigest, validatePolicy } from '../../disruption/effective-policies.ts';
import { summarisePolicies } from '../../disruption/summarise-policies.ts';
import { formatProblem } from '../../machineconfig/problem.ts';

/** Condition of the MachineConfiguration: whether spec.nodeDisruptionPolicy is in force. */
const CONDITION = 'NodeDisruptionPolicyApplied';

/**
 * The status of the MachineConfiguration: the policies in force and their digest.
 *
 * A spec that breaks a rule changes nothing that is in force: the last good policies stay, the defaults where there
 * are none, and the condition says what is wrong.
 *
 * @param now ms since the epoch; goes into the condition when its status changes.
 */
export function policyStatus(
  configuration: MachineConfiguration,
  settings: { readonly containerRuntimeUnit: string },
  now: number,
): MachineConfigurationStatus {
  const { spec, status, metadata } = configuration;
  const problems = spec?.nodeDisruptionPolicy === undefined ? [] : validatePolicy(spec.nodeDisruptionPolicy);
  const inForce: ClusterPolicies =
    problems.length === 0
      ? effectivePolicies(spec?.nodeDisruptionPolicy, settings)
      : {
          // Policies that an earlier version of the operator recorded do not name the unit.
          containerRuntimeUnit: settings.containerRuntimeUnit,
          ...(status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? effectivePolicies(undefined, settings)),
        };
  const verdict: Pick<Condition, 'status' | 'reason' | 'message'> =
    problems.length === 0
      ? {
          status: 'True',
          reason: 'AsSpecified',
          message: 'The policies of spec and the defaults are in force',
        }
      : {
          status: 'False',
          reason: 'InvalidPolicy',
          message: `The last good policies stay in force: ${problems.map(formatProblem).join('; ')}`,
        };
  return {
    ...status,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    conditions: [...setCondition(status?.conditions ?? [], { type: CONDITION, ...verdict }, new Date(now))],
    nodeDisruptionPolicyStatus: { clusterPolicies: inForce },
    summary: summarisePolicies(inForce),
    policyDigest: policyDigest(inForce),
  };
}

import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { conditionOf } from './conditions.ts';

/** @returns why the policies in force differ from spec, as a clause; undefined when they don't. */
export function policiesLag(configuration: MachineConfiguration | undefined): string | undefined {
  const { metadata, status } = configuration ?? {};
  if (status?.observedGeneration !== metadata?.generation)
    return 'spec has changed, but the operator has not applied it yet';
  const applied = conditionOf(status?.conditions, 'NodeDisruptionPolicyApplied');
  return applied?.status === 'False'
    ? `the policies in spec are not in effect: ${applied.message}`
    : undefined;
}

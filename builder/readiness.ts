import type { BuildConditionType } from '../api/machine-os-build.ts';
import type { BuildWaitingReason } from '../api/machine-os-config.ts';
import type { Condition } from '../api/object.ts';
import type { Readiness } from '../cluster/readiness.ts';

/** @param conditions MCO's of a MachineOSBuild. @returns how far it is. */
export function buildReadiness(conditions: readonly Condition[]): Readiness {
  const condition = (of: BuildConditionType) => conditions.find(({ type }) => type === of);
  const ended = (['Succeeded', 'Failed', 'Interrupted'] as const)
    .map(condition)
    .find((each) => each?.status === 'True');
  if (ended?.type === 'Succeeded') return { kind: 'ready', message: ended.message };
  if (ended !== undefined) return { kind: 'stalled', reason: ended.reason, message: ended.message };
  const { reason = 'BuildPending', message = 'The build has not started' } = condition('Building') ?? {};
  return { kind: 'reconciling', reason, message };
}

/** Why no build of a MachineOSConfig can be created. */
interface Waiting {
  readonly reason: BuildWaitingReason;
  readonly why: string;
}

/** Whether the builder waits for somebody, or for what comes by itself. */
const IS_STALLED: Readonly<Record<BuildWaitingReason, boolean>> = {
  PoolMissing: true,
  RepositoryTaken: true,
  BaseImageMissing: true,
  // The registry is asked again.
  BaseImageUnknown: false,
  RenderedConfigMissing: false,
  PoliciesUnknown: false,
};

/** @returns how far a MachineOSConfig is for which no build can be created. */
export function waitingReadiness({ reason, why: message }: Waiting): Readiness {
  return { kind: IS_STALLED[reason] ? 'stalled' : 'reconciling', reason, message };
}

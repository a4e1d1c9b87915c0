import type { MachineConfigPool, MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';
import {
  type FailingStep,
  formatFailing,
  formatFailingOn,
  reportedSteps,
} from '../../cluster/failing-steps.ts';
import { setReadiness } from '../../cluster/readiness.ts';
import { setCondition } from '../../cluster/update-object.ts';

/** @returns what a status says that fails, for an operator that starts again. */
export function stepsOfStatus({
  failingSteps = [],
}: MachineConfigPoolStatus): readonly Pick<FailingStep, 'object' | 'doing' | 'failure' | 'since'>[] {
  return failingSteps.map(({ apiVersion, kind, name, namespace, step, reason, message, since }) => ({
    object: { apiVersion, kind, metadata: { name, namespace } },
    doing: step,
    failure: { kind: reason, why: message },
    since: Date.parse(since),
  }));
}

/** @returns causes of a pool's condition Degraded. */
export function formatFailures(failing: readonly FailingStep[]): string[] {
  return failing.map((step) =>
    step.object.kind === 'MachineConfigPool' ? formatFailing(step) : formatFailingOn(step),
  );
}

/**
 * The status of a pool that could not be read as a whole: what it said, and that it needs somebody.
 *
 * @param now ms since the epoch.
 */
export function withFailures(
  { status = {}, metadata }: MachineConfigPool,
  failing: readonly FailingStep[],
  now: number,
): MachineConfigPoolStatus {
  const message = formatFailures(failing).join('; ');
  const verdict = { reason: 'Degraded', message };
  const conditions = setCondition(
    status.conditions ?? [],
    { type: 'Degraded', status: 'True', ...verdict, observedGeneration: metadata.generation },
    new Date(now),
  );
  return {
    ...status,
    failingSteps: reportedSteps(failing),
    conditions: setReadiness(conditions, { kind: 'stalled', ...verdict }, metadata.generation, new Date(now)),
  };
}

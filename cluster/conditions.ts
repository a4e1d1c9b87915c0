import type { Condition } from '../api/object.ts';

/**
 * Sets one condition (API conventions, "Typical status properties").
 *
 * @param now when it is so.
 * @returns the conditions with this one in its place, or at the end. lastTransitionTime changes with the status only.
 */
export function setCondition(
  conditions: readonly Condition[],
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: Date,
): Condition[] {
  const known = conditions.find(({ type }) => type === condition.type);
  const lastTransitionTime = known?.status === condition.status ? known.lastTransitionTime : toSeconds(now);
  const next: Condition = { ...condition, lastTransitionTime };
  return known === undefined ? [...conditions, next] : conditions.map((old) => (old === known ? next : old));
}

/** @returns whether the condition is there and True. */
export function conditionIsTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

/** metav1.Time has whole seconds; a finer one would differ from what comes back. */
function toSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

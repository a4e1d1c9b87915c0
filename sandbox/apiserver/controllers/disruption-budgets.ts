import { at, isObject, type Json, type JsonObject, objectsAt, stringAt } from '../json.ts';
import { labelSelectorOf, matchesLabels } from '../request/selectors.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';

/** How many pods a PodDisruptionBudget lets go now (policy/v1 PodDisruptionBudgetStatus). */
export interface BudgetStatus extends JsonObject {
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  readonly disruptionsAllowed: number;
  readonly observedGeneration: number;
}

/** @returns whether a budget is for a pod. An empty selector is for all of its namespace, none for none (policy/v1). */
export function covers(budget: StoredObject, pod: StoredObject): boolean {
  if (budget.metadata.namespace !== pod.metadata.namespace) return false;
  const selector = labelSelectorOf(at(budget, 'spec', 'selector'));
  return selector !== undefined && matchesLabels(selector, labelsOf(pod));
}

/** @returns whether a pod runs and is ready, and is not about to go. */
export function isHealthy(pod: StoredObject): boolean {
  const ready = objectsAt(pod, 'status', 'conditions').find(({ type }) => type === 'Ready');
  return ready?.['status'] === 'True' && pod.metadata.deletionTimestamp === undefined;
}

/** @returns the status of a budget over these pods of the cluster. */
export function budgetStatus(budget: StoredObject, pods: readonly StoredObject[]): BudgetStatus {
  const covered = pods.filter((pod) => covers(budget, pod) && isActive(pod));
  const expectedPods = covered.length;
  const currentHealthy = covered.filter(isHealthy).length;
  const desiredHealthy = desired(at(budget, 'spec') ?? {}, expectedPods);
  return {
    currentHealthy,
    desiredHealthy,
    expectedPods,
    // Without a pod there is nothing to keep, and nothing to let go (disruption controller, updatePdbStatus).
    disruptionsAllowed: expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy),
    observedGeneration: budget.metadata.generation ?? 0,
  };
}

function isActive(pod: StoredObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  return phase !== 'Succeeded' && phase !== 'Failed';
}

function desired(spec: Json, expected: number): number {
  if (!isObject(spec)) return expected;
  if (spec['maxUnavailable'] !== undefined)
    return Math.max(0, expected - scaled(spec['maxUnavailable'], expected));
  return scaled(spec['minAvailable'] ?? 1, expected);
}

/** Percentages round up for both (disruption controller, GetScaledValueFromIntOrPercent with roundUp). */
function scaled(value: Json, total: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(String(value))?.[1];
  return percent === undefined ? total : Math.ceil((Number(percent) * total) / 100);
}

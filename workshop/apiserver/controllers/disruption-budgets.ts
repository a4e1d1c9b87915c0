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

/**
 * @param pods of the cluster.
 * @param replicas how many pods a controller is to have, by its uid; undefined for what has no such number.
 * @returns the status of a budget.
 */
export function budgetStatus(
  budget: StoredObject,
  pods: readonly StoredObject[],
  replicas: (controller: string) => number | undefined,
): BudgetStatus {
  const covered = pods.filter((pod) => covers(budget, pod) && isActive(pod));
  const expectedPods = expected(covered, replicas);
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

/**
 * As many as the pods' controllers are to have (disruption controller, getExpectedScale): counted by the pods there
 * are, one that was just evicted and not created again yet would allow the next.
 */
function expected(
  covered: readonly StoredObject[],
  replicas: (controller: string) => number | undefined,
): number {
  const byController = Map.groupBy(covered, controllerOf);
  return [...byController].reduce((sum, [controller, pods]) => {
    const scale = controller === undefined ? undefined : replicas(controller);
    return sum + (scale ?? pods.length);
  }, 0);
}

function controllerOf({ metadata }: StoredObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

/** @returns spec.replicas of each of these controllers, by uid. */
export function replicasByUid(
  controllers: readonly StoredObject[],
): (controller: string) => number | undefined {
  const counts = new Map(controllers.map((object) => [object.metadata.uid, at(object, 'spec', 'replicas')]));
  return (uid) => {
    const count = counts.get(uid);
    return typeof count === 'number' ? count : undefined;
  };
}

function isActive(pod: StoredObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  return phase !== 'Succeeded' && phase !== 'Failed';
}

function desired(spec: Json, total: number): number {
  if (!isObject(spec)) return total;
  if (spec['maxUnavailable'] !== undefined) return Math.max(0, total - scaled(spec['maxUnavailable'], total));
  return scaled(spec['minAvailable'] ?? 1, total);
}

/** Percentages round up for both (disruption controller, GetScaledValueFromIntOrPercent with roundUp). */
function scaled(value: Json, total: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(String(value))?.[1];
  return percent === undefined ? total : Math.ceil((Number(percent) * total) / 100);
}

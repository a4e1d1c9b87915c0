import { type Pod, type PodDisruptionBudget, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { matchesSelector } from '../../api/label-selector.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isAtLeast } from '../../predict/cost.ts';
import { costOfPrediction, type PredictedNode } from '../../predict/node/predict-node.ts';
import { podVerdict } from '../../rollout/act/drain-step.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { readAll, unlessForbidden } from '../command-line/cluster-access.ts';

/** A PodDisruptionBudget that allows no disruption now, with the pods of its namespace. */
export interface TightBudget {
  readonly budget: PodDisruptionBudget;
  readonly pods: readonly Pod[];
}

/** @returns none where the user may not read them. @throws {CommandError} */
export async function readTightBudgets(
  client: ApiClient,
  signal: AbortSignal,
): Promise<readonly TightBudget[]> {
  const budgets = (await unlessForbidden(readAll(client, PodDisruptionBudgets, { signal }))) ?? [];
  const tight = budgets.filter(({ status }) => status?.disruptionsAllowed === 0);
  const byNamespace = Map.groupBy(tight, ({ metadata }) => metadata.namespace ?? 'default');
  const read = [...byNamespace].map(async ([namespace, own]) => {
    const pods = (await unlessForbidden(readAll(client, Pods, { namespace, signal }))) ?? [];
    return own.map((budget) => ({ budget, pods }));
  });
  return (await Promise.all(read)).flat();
}

/** @returns whether the change drains or reboots a node. */
export function isDrained({ prediction }: Pick<PredictedNode, 'prediction'>): boolean {
  return isAtLeast(costOfPrediction(prediction), 'drain');
}

/** @returns which of the nodes that the change drains or reboots can't be drained now; one line for each pod. */
export function blockedDrains(
  nodes: readonly PredictedNode[],
  budgets: readonly TightBudget[],
): readonly string[] {
  const drained = new Set(nodes.filter(isDrained).map(({ node }) => node.metadata.name));
  return budgets.flatMap(({ budget, pods }) =>
    pods
      .filter((pod) => drained.has(pod.spec.nodeName ?? '') && isCovered(pod, budget))
      .map(
        ({ metadata, spec }) =>
          `node ${spec.nodeName} can't be drained now: PodDisruptionBudget ${budget.metadata.namespace}/${budget.metadata.name} allows no disruption of pod ${metadata.name}`,
      ),
  );
}

/** policy/v1: an empty selector matches every pod of the namespace, an absent one none. */
function isCovered(pod: Pod, { spec: { selector } }: PodDisruptionBudget): boolean {
  if (selector === undefined || !matchesSelector(selector, pod.metadata.labels ?? {})) return false;
  return podVerdict(pod, defaultRolloutOptions.drain).kind === 'evict';
}

import { type Pod, type PodDisruptionBudget, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import {
  type MachineConfigNodeStatus,
  MOST_BLOCKING_PODS,
  type NodeConditionType,
} from '../../api/machine-config-node.ts';
import { type Condition, isReported } from '../../api/object.ts';
import { plural } from '../../api/plural.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { setCondition } from '../../cluster/update-object.ts';
import type { DrainOptions } from '../options.ts';
import { coveringBudgets, type DrainTimes, formatBudgets, nameOf, podVerdict } from './drain-step.ts';

/** What somebody else's drain of a node waits for. */
export type AwaitedPods = NonNullable<MachineConfigNodeStatus['maintenanceDrain']>;

const TYPE: NodeConditionType = 'MaintenanceDrained';
/** Pods that the condition names. */
const NAMED = 3;

/**
 * Reads which pods are left that a drain by Shale's rules would evict, and evicts none of them: one list of the node's
 * pods, and one of budgets for each namespace of the pods that are reported.
 *
 * @returns undefined when the node is drained.
 * @throws ApiError
 */
export async function awaitedPods(
  client: ApiClient,
  node: string,
  { options, times }: { readonly options: DrainOptions; readonly times: DrainTimes },
  signal: AbortSignal,
): Promise<AwaitedPods | undefined> {
  const { items } = await client.list(Pods, { fieldSelector: `spec.nodeName=${node}`, signal });
  const awaited = items
    .map((pod) => ({ pod, verdict: podVerdict(pod, options, times) }))
    .filter(({ verdict }) => verdict.kind !== 'leave')
    .toSorted((a, b) => (nameOf(a.pod) < nameOf(b.pod) ? -1 : 1));
  if (awaited.length === 0) return undefined;
  const named = awaited.slice(0, MOST_BLOCKING_PODS);
  const evictable = named.filter(({ verdict }) => verdict.kind === 'evict').map(({ pod }) => pod);
  const budgets = await budgetsByNamespace(client, evictable, signal);
  const waitsFor = named.map(({ pod, verdict }) => {
    const reason = verdict.kind === 'refuse' ? verdict.why : undefined;
    if (verdict.kind === 'terminating') return { pod: nameOf(pod), reason: 'it is still terminating' };
    return { pod: nameOf(pod), reason: reason ?? blockedBy(pod, budgets) ?? 'it is not evicted yet' };
  });
  return { waitsFor, pods: awaited.length };
}

/**
 * @param awaited undefined: the node is drained.
 * @returns the status with what a maintenance's drain waits for; unchanged before the daemon has reported.
 */
export function withMaintenanceDrain(
  status: MachineConfigNodeStatus | undefined,
  awaited: AwaitedPods | undefined,
  now: Date,
): MachineConfigNodeStatus | undefined {
  if (!isReported(status)) return status;
  const { maintenanceDrain: _, ...others } = status;
  const conditions = setCondition(status.conditions ?? [], conditionOf(awaited), now);
  return { ...others, conditions, ...(awaited === undefined ? {} : { maintenanceDrain: awaited }) };
}

/** @returns the status of a node that nobody maintains. */
export function withoutMaintenanceDrain(
  status: MachineConfigNodeStatus | undefined,
): MachineConfigNodeStatus | undefined {
  if (!isReported(status) || !hasMaintenanceDrain(status)) return status;
  const { maintenanceDrain: _, conditions = [], ...others } = status;
  return { ...others, conditions: conditions.filter(({ type }) => type !== TYPE) };
}

/** @returns whether a status says how far the drain of a maintenance is. */
export function hasMaintenanceDrain(status: MachineConfigNodeStatus | undefined): boolean {
  return status?.conditions?.some(({ type }) => type === TYPE) === true;
}

function conditionOf(awaited: AwaitedPods | undefined): Omit<Condition, 'lastTransitionTime'> {
  if (awaited === undefined) {
    const message = 'No pod is left that the maintenance would disturb';
    return { type: TYPE, status: 'True', reason: 'Drained', message };
  }
  const { waitsFor, pods } = awaited;
  const named = waitsFor.slice(0, NAMED).map(({ pod, reason }) => `pod ${pod}: ${reason}`);
  const more = pods > named.length ? `; and ${plural(pods - named.length, 'more pod', 'more pods')}` : '';
  const message = `The drain of the maintenance waits for ${named.join('; ')}${more}`;
  return { type: TYPE, status: 'False', reason: 'AwaitingPods', message };
}

type Budgets = ReadonlyMap<string, readonly PodDisruptionBudget[]>;

async function budgetsByNamespace(
  client: ApiClient,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<Budgets> {
  const namespaces = new Set(pods.map(({ metadata }) => metadata.namespace ?? 'default'));
  const listed = await Promise.all(
    [...namespaces].map(async (namespace) => {
      const { items } = await client.list(PodDisruptionBudgets, { namespace, signal });
      return [namespace, items] as const;
    }),
  );
  return new Map(listed);
}

/** @returns the budgets that let the pod not go now. */
function blockedBy(pod: Pod, budgets: Budgets): string | undefined {
  const covering = coveringBudgets(budgets.get(pod.metadata.namespace ?? 'default') ?? [], pod);
  const isBlocked = covering.some(({ status }) => (status?.disruptionsAllowed ?? 0) === 0);
  return isBlocked ? formatBudgets(covering) : undefined;
}

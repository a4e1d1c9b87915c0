import { type Pod, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';

/** Pods for drains to meet; no kubelet is there to end them. */

/** @returns a pod on a node, with a label `app` of its name. */
export function podOn(node: string, name: string, more: Partial<Pod['metadata']> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name }, ...more },
    spec: { nodeName: node, containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 0 },
  };
}

/** Puts a ready pod `held-<node>` on a node, and a PodDisruptionBudget of that name that lets it not go. */
export async function blockDrain(
  client: ApiClient,
  node: string,
  signal: AbortSignal,
  more: Partial<Pod['metadata']> = {},
): Promise<void> {
  const where = { namespace: 'default', signal };
  const name = `held-${node}`;
  const pod = await client.create(Pods, podOn(node, name, more), where);
  const ready = { type: 'Ready', status: 'True' as const };
  await client.replaceStatus(Pods, { ...pod, status: { phase: 'Running', conditions: [ready] } }, where);
  const spec = { minAvailable: 1, selector: { matchLabels: { app: name } } };
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name }, spec };
  await client.create(PodDisruptionBudgets, budget, where);
}

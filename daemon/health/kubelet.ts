import { type Node, Nodes } from '../../api/kubernetes.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import type { Kubelet } from './decide-health.ts';

const REQUEST_MS = 10_000;

/**
 * Asks the cluster for the kubelet of a node.
 *
 * @param bootID the present boot: the Ready condition outlives a reboot by the node monitor's grace period.
 * @throws the signal's reason.
 */
export async function lookAtKubelet(
  client: ApiClient,
  nodeName: string,
  bootID: string,
  signal: AbortSignal,
): Promise<Kubelet> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
  try {
    return kubeletOf(await client.find(Nodes, nodeName, { signal: bounded }), bootID);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && error.status === 403) return { kind: 'unwatched' };
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
  }
}

/** @param node undefined when there is none: a machine that is no node of the cluster. */
export function kubeletOf(node: Node | undefined, bootID: string): Kubelet {
  if (node === undefined) return { kind: 'unwatched' };
  const reported = node.status?.nodeInfo?.bootID;
  if (reported !== undefined && reported !== bootID) {
    return { kind: 'notReady', why: 'it has not reported since the reboot' };
  }
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return { kind: 'ready' };
  return {
    kind: 'notReady',
    why: ready === undefined ? 'it has not reported' : ready.message || ready.reason,
  };
}

import { type Node, Nodes } from '../../api/kubernetes.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { kernelBootID } from '../host/userspace-boot.ts';
import type { Kubelet } from './decide-health.ts';

const REQUEST_MS = 10_000;

/** The present boot: the Ready condition outlives a reboot by the node monitor's grace period. */
export interface KubeletBoot {
  readonly bootID: string;
  /** ms since the epoch, by the clock that the kubelet goes by: see Host. */
  readonly softBootSince: number | undefined;
}

/**
 * Asks the cluster for the kubelet of a node.
 *
 * @throws the signal's reason.
 */
export async function lookAtKubelet(
  client: ApiClient,
  nodeName: string,
  boot: KubeletBoot,
  signal: AbortSignal,
): Promise<Kubelet> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
  try {
    return kubeletOf(await client.find(Nodes, nodeName, { signal: bounded }), boot);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && error.status === 403) return { kind: 'unwatched' };
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
  }
}

/** @param node undefined when there is none: a machine that is no node of the cluster. */
export function kubeletOf(node: Node | undefined, { bootID, softBootSince }: KubeletBoot): Kubelet {
  if (node === undefined) return { kind: 'unwatched' };
  const reported = node.status?.nodeInfo?.bootID;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const isOfOtherBoot = reported !== undefined && reported !== kernelBootID(bootID);
  if (isOfOtherBoot || isBefore(ready?.lastHeartbeatTime, softBootSince)) {
    return { kind: 'notReady', why: 'it has not reported since the reboot' };
  }
  if (ready?.status === 'True') return { kind: 'ready' };
  return {
    kind: 'notReady',
    why: ready === undefined ? 'it has not reported' : ready.message || ready.reason,
  };
}

/** To the second, as the kubelet tells it: one within that of the boot may be of the kubelet before it. */
function isBefore(heartbeat: string | undefined, since: number | undefined): boolean {
  if (heartbeat === undefined || since === undefined) return false;
  return Math.floor(Date.parse(heartbeat) / 1000) <= Math.floor(since / 1000);
}

import { kernelBootID } from '../../api/boot-id.ts';
import { errorMessage } from '../../api/error-message.ts';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { plural } from '../../api/plural.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
/** How the node's own checks of its health have ended so far. */
export type Checks =
  | { readonly kind: 'passed' }
  /** The first that failed, and its last words. It may pass later: services need time to start. */
  | { readonly kind: 'failed'; readonly name: string; readonly why: string };

/** What the cluster says of the kubelet of this boot. */
export type Kubelet =
  | { readonly kind: 'ready' }
  | { readonly kind: 'notReady'; readonly why: string }
  /** There is no Node object, or the daemon may not read it: nothing to wait for. */
  | { readonly kind: 'unwatched' }
  /** The API server could not be asked. */
  | { readonly kind: 'unknown'; readonly why: string };

export interface HealthLimits {
  /** ms from the first look that the node's own checks have in all. */
  readonly checksMs: number;
  /** ms from the first look that the kubelet has to be Ready. */
  readonly kubeletMs: number;
  /**
   * ms from boot within which a daemon has to be there, or the host rolls back by itself; 0: it never does. Absent:
   * `daemonLimitMs` says.
   */
  readonly daemonMs?: number | undefined;
}

/** For the kubelet to start the daemon once it is Ready, its image to be pulled again perhaps. */
const DAEMON_MARGIN_MS = 300_000;

/** @returns how long after boot a daemon has to be there; undefined where the host never rolls back by itself. */
export function daemonLimitMs({ checksMs, kubeletMs, daemonMs }: HealthLimits): number | undefined {
  const limitMs = daemonMs ?? Math.max(checksMs, kubeletMs) + DAEMON_MARGIN_MS;
  return limitMs === 0 ? undefined : limitMs;
}

/** What there is to know of a node that has booted its target. */
export interface HealthObservation {
  /** How often the target was booted without having been found healthy, this boot included. */
  readonly boots: number;
  readonly checks: Checks;
  readonly kubelet: Kubelet;
  /** ms since the daemon's first look at this boot. */
  readonly elapsedMs: number;
}

export type HealthVerdict =
  | { readonly kind: 'healthy' }
  /** `limitMs`: since the first look, when it is unhealthy; absent: it may wait for as long as it takes. */
  | { readonly kind: 'wait'; readonly why: string; readonly limitMs?: number }
  | { readonly kind: 'unhealthy'; readonly why: string };

/** A target that goes down this often before it is found healthy is not going to be (greenboot's default, too). */
export const MOST_BOOTS = 3;

/**
 * Judges a node that has booted its target. Whatever is wrong may right itself until its time is over. An API server
 * that can't be asked is no proof against the node, and a rollback needs it anyway, for the node's lease.
 */
export function decideHealth(
  { boots, checks, kubelet, elapsedMs }: HealthObservation,
  { checksMs, kubeletMs }: HealthLimits,
): HealthVerdict {
  if (boots > MOST_BOOTS) {
    return {
      kind: 'unhealthy',
      why: `the node went down ${plural(boots - 1, 'time')} before it passed its health checks`,
    };
  }
  if (checks.kind === 'failed') {
    const why = `health check ${checks.name} ${checks.why}`;
    return elapsedMs >= checksMs ? { kind: 'unhealthy', why } : { kind: 'wait', why, limitMs: checksMs };
  }
  switch (kubelet.kind) {
    case 'ready':
    case 'unwatched':
      return { kind: 'healthy' };
    case 'unknown':
      return {
        kind: 'wait',
        why: `the API server could not be asked whether the kubelet is Ready: ${kubelet.why}`,
      };
    case 'notReady':
      return elapsedMs >= kubeletMs
        ? { kind: 'unhealthy', why: `the kubelet was not Ready within ${kubeletMs / 1000} s: ${kubelet.why}` }
        : { kind: 'wait', why: `the kubelet is not Ready yet: ${kubelet.why}`, limitMs: kubeletMs };
  }
}

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
    return { kind: 'unknown', why: errorMessage(error) };
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

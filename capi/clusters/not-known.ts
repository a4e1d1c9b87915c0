import { ApiError, ApiUnreachable } from '../../cluster/api-client.ts';
import { NotKnownNow } from './clusters.ts';

/** ms; Cluster API waits 10 s for a hook unless its ExtensionConfig says otherwise. */
const HOOK_DEADLINE_MS = 8_000;

/** ms for one request: one that isn't answered by then is sent again, or given up, within the hook's time. */
export const HOOK_REQUEST_DEADLINE_MS = 3_000;

/** What Shale needs in a workload cluster, for messages. */
export const WORKLOAD_COMPONENT = 'manifests/components/cluster-api-workload';

/**
 * Does what needs a cluster that may be away.
 *
 * @param where the cluster in words: `the workload cluster default/prod`.
 * @param advice what to do about a request that is refused.
 * @throws {NotKnownNow} without an address, for what the API server answers and where it doesn't; every other error as
 *   it is.
 */
export async function unlessAway<T>(where: string, advice: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const why = whyAway(error, advice);
    if (why === undefined) throw error;
    throw new NotKnownNow(`${where} ${why}`, { cause: error });
  }
}

/** @returns undefined for an error that is not about the cluster. */
function whyAway(error: unknown, advice: string): string | undefined {
  // Its own words would have an address.
  if (error instanceof ApiUnreachable || isOutOfTime(error)) return 'does not answer';
  if (!(error instanceof ApiError)) return undefined;
  const refused = error.status === 401 || error.status === 403;
  return `refuses a request: ${error.message}${refused ? `; ${advice}` : ''}`;
}

function isOutOfTime(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

/** @returns a signal that is aborted with the given one, and when a hook has to have answered. */
export function withinHook(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(HOOK_DEADLINE_MS)]);
}

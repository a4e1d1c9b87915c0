import { Leases } from '../../api/kubernetes.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';

export interface LeaseCheck {
  readonly client: ApiClient;
  readonly node: string;
  /** Where node leases live. */
  readonly namespace: string;
  /** Under whose lease the grant was given. */
  readonly holder: string;
  readonly signal: AbortSignal;
}

/**
 * A grant is good only while who gave it holds the node's lease: a maintenance that took it over has the node to itself.
 *
 * @returns why the node must not be touched now; undefined when it may. Where the daemon may not read leases, the
 *   operator alone sees to it.
 * @throws ApiError
 */
export async function leaseObstacle({
  client,
  node,
  namespace,
  holder,
  signal,
}: LeaseCheck): Promise<string | undefined> {
  const name = `node-${node}`;
  try {
    const lease = await client.find(Leases, name, { namespace, signal });
    const found = lease?.spec?.holderIdentity ?? '';
    if (found === holder) return undefined;
    const by = found === '' ? 'nobody' : found;
    return `the grant was given under the lease of ${holder}, but ${namespace}/${name} is held by ${by}`;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}

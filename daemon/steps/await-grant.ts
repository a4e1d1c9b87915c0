import type { DisruptionAction } from '../../api/disruption-action.ts';
import { type Lease, Leases } from '../../api/kubernetes.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { type RebootKind, rebootWords } from '../soft-reboot/reboot-words.ts';
import type { Observation } from './step.ts';
import { publish, type StepContext, type StepOutcome } from './step-context.ts';
import type { Update } from './update.ts';

const LEASE_RETRY_MS = 5_000;

/** Joins what a sentence enumerates: "a", "a and b", "a, b, and c". */
const list = new Intl.ListFormat('en', { type: 'conjunction' });

/** @returns what an update waits for the operator to grant, as a message: "Waiting for permission to reboot". */
export function formatAwaitedGrant({ actions, ...kind }: Pick<UpdatePlan, 'actions'> & RebootKind): string {
  if (actions.length === 0) return 'Waiting for permission to apply the update, which needs no action';
  return `Waiting for permission to ${list.format(actions.map((action) => formatIntent(action, kind)))}`;
}

/** @returns an action as the infinitive of a sentence. */
function formatIntent(action: DisruptionAction, kind: RebootKind): string {
  switch (action.type) {
    case 'Drain':
      return 'drain the node';
    case 'DaemonReload':
      return 'reload the units of systemd';
    case 'Reload':
      return `reload ${action.service}`;
    case 'Restart':
      return `restart ${action.service}`;
    case 'Reboot':
      return rebootWords(kind).infinitive;
  }
}

/** @returns who granted the update, and must still hold the node's lease. */
export function holderOf({ spec }: Observation): string {
  return spec.grant?.leaseHolder ?? '';
}

/**
 * @param holder see holderOf; of a rollback, who granted the update that failed.
 * @returns how long to wait for the lease; undefined when the node may be changed.
 */
export async function waitForLease(
  context: StepContext,
  { plan }: Pick<Update, 'plan'>,
  holder: string,
  observation: Observation,
): Promise<StepOutcome | undefined> {
  const why = await leaseObstacle({
    client: context.client,
    node: context.settings.nodeName,
    namespace: context.settings.leaseNamespace,
    holder,
    signal: context.signal,
  });
  if (why === undefined) return undefined;
  await publish(context, observation, { kind: 'waiting', plan, why });
  return { kind: 'wait', ms: LEASE_RETRY_MS };
}

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
 * Work that needs no grant keeps away from a node that somebody else has taken to themselves.
 *
 * @returns who holds the node's lease, where that is neither nobody nor `holder` and the lease has not run out.
 * @throws ApiError
 */
export async function otherHolder(
  { client, node, namespace, holder, signal }: LeaseCheck,
  now = Date.now(),
): Promise<string | undefined> {
  const lease = await findLease({ client, node, namespace, signal });
  if (lease === 'unreadable') return undefined;
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  if (holderIdentity === '' || holderIdentity === holder) return undefined;
  const hasRunOut = renewTime !== undefined && Date.parse(renewTime) + leaseDurationSeconds * 1000 < now;
  return hasRunOut ? undefined : holderIdentity;
}

/**
 * A grant is good only while who gave it holds the node's lease: a maintenance that took it over has the node to itself.
 *
 * @returns why the node must not be touched now; undefined when it may. Where the daemon may not read leases, the
 *   operator alone sees to it.
 * @throws ApiError
 */
async function leaseObstacle({
  client,
  node,
  namespace,
  holder,
  signal,
}: LeaseCheck): Promise<string | undefined> {
  const lease = await findLease({ client, node, namespace, signal });
  if (lease === 'unreadable') return undefined;
  const current = lease?.spec?.holderIdentity ?? '';
  if (current === holder) return undefined;
  const by = current === '' ? 'nobody' : current;
  return `Waiting for the node lease: ${holder} granted the update, but ${namespace}/node-${node} is held by ${by}`;
}

async function findLease({
  client,
  node,
  namespace,
  signal,
}: Omit<LeaseCheck, 'holder'>): Promise<Lease | 'unreadable' | undefined> {
  try {
    return await client.find(Leases, `node-${node}`, { namespace, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return 'unreadable';
    throw error;
  }
}

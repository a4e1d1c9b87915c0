import type { DisruptionAction } from '../../api/disruption-action.ts';
import { type Lease, Leases } from '../../api/kubernetes.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { POWERED_OFF_LEASE_HOLDER } from '../../api/names.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { type RebootKind, rebootWords } from '../reboot/reboot-words.ts';
import type { Observation } from './step.ts';
import { publish, type StepContext, type StepOutcome } from './step-context.ts';
import type { Update } from './update.ts';

const LEASE_RETRY_MS = 5_000;
/** Durations of a lease after which its holder is taken to be gone. */
const LEFT_AFTER = 2;

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
 * @param evenIfRunOut for a rollback: the node is unhealthy until it is through.
 * @returns how long to wait for the lease; undefined when the node may be changed.
 */
export async function waitForLease(
  context: StepContext,
  { plan }: Pick<Update, 'plan'>,
  holder: string,
  observation: Observation,
  { evenIfRunOut = false }: { readonly evenIfRunOut?: boolean } = {},
): Promise<StepOutcome | undefined> {
  const why = await leaseObstacle(context, holder, evenIfRunOut ? Number.NEGATIVE_INFINITY : Date.now());
  if (why === undefined) return undefined;
  await publish(context, observation, { kind: 'waiting', plan, why });
  return { kind: 'wait', ms: LEASE_RETRY_MS };
}

/**
 * Work that needs no grant leaves a node alone that somebody else has taken.
 *
 * @returns who holds the node's lease, where that is neither nobody nor `holder` and the lease has not run out.
 * @throws ApiError
 */
export async function otherHolder(
  context: LeaseContext,
  holder: string,
  now = Date.now(),
): Promise<string | undefined> {
  const lease = await findLease(context);
  if (lease === 'unreadable') return undefined;
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  if (holderIdentity === '' || holderIdentity === holder) return undefined;
  const hasRunOut = renewTime !== undefined && Date.parse(renewTime) + leaseDurationSeconds * 1000 < now;
  return hasRunOut ? undefined : formatHolder(holderIdentity);
}

function formatHolder(holder: string): string {
  return holder === POWERED_OFF_LEASE_HOLDER ? `${holder} (the machine was switched off on request)` : holder;
}

/**
 * A grant is good only while its holder has the node's lease: a maintenance that took it over has the node to itself.
 * Nor is it good for long without an operator, because nobody could withdraw it: no process notices a person who
 * works on the node meanwhile, or who has switched the machine off and on again.
 *
 * @param now ms since the epoch.
 * @returns why the node must not be changed now; undefined when it may. Where the daemon may not read leases, the
 *   operator alone checks them.
 * @throws ApiError
 */
export async function leaseObstacle(
  context: LeaseContext,
  holder: string,
  now = Date.now(),
): Promise<string | undefined> {
  const lease = await findLease(context);
  if (lease === 'unreadable') return undefined;
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  const { leaseNamespace, nodeName } = context.settings;
  const [granted, name] = [`${holder} granted the update`, `${leaseNamespace}/node-${nodeName}`];
  if (holderIdentity !== holder) {
    const by = holderIdentity === '' ? 'nobody' : formatHolder(holderIdentity);
    return `Waiting for the node lease: ${granted}, but ${name} is held by ${by}`;
  }
  // The clock of another machine wrote the time.
  const isLeft =
    renewTime !== undefined && Date.parse(renewTime) + LEFT_AFTER * leaseDurationSeconds * 1000 < now;
  return isLeft
    ? `Waiting for the node lease: ${granted}, and has not renewed ${name} since ${renewTime}`
    : undefined;
}

type LeaseContext = Pick<StepContext, 'client' | 'settings' | 'signal'>;

async function findLease({
  client,
  settings,
  signal,
}: LeaseContext): Promise<Lease | 'unreadable' | undefined> {
  const { leaseNamespace: namespace, nodeName } = settings;
  try {
    return await client.find(Leases, `node-${nodeName}`, { namespace, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return 'unreadable';
    throw error;
  }
}

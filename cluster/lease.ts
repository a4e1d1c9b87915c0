import { type Lease, Leases } from '../api/kubernetes.ts';
import { annotations } from '../api/names.ts';
import { present } from '../api/present.ts';
import { type ApiClient, isAlreadyExists, isConflict, isNotFound, type Where } from './api-client.ts';

/** A request to hold a coordination.k8s.io Lease. */
export interface LeaseRequest {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  /** After this long without a renewal anybody may take it. */
  readonly durationSeconds: number;
  /** What it is held for, as text; reported beside the holder in an annotation. */
  readonly reason?: string;
  /** Machine of Cluster API, as `namespace/name`; reported beside the holder in an annotation. */
  readonly machine?: string | undefined;
  /** Version of the holder, reported beside it in an annotation. */
  readonly version?: string;
}

type LeaseDecision =
  | { readonly kind: 'create' }
  | { readonly kind: 'renew' }
  /** Free, or its holder let it expire. */
  | { readonly kind: 'takeOver' }
  | { readonly kind: 'taken'; readonly holder: string; readonly untilMs: number };

/** @returns until when a lease that has a holder is its, in ms since the epoch. */
export type EndOfLease = (lease: Lease) => number;

/**
 * Decides what a candidate may do with a lease (semantics of the medik8s common lease and of client-go's leader
 * election).
 *
 * @param lease as it is now; undefined when there is none.
 * @param nowMs ms since the epoch.
 * @param endOf when another's lease is over; by default what its times say.
 */
export function decideLease(
  lease: Lease | undefined,
  holder: string,
  nowMs: number,
  endOf: EndOfLease = leaseEnd,
): LeaseDecision {
  if (lease === undefined) return { kind: 'create' };
  const { holderIdentity = '' } = lease.spec ?? {};
  if (holderIdentity === holder) return { kind: 'renew' };
  if (holderIdentity === '') return { kind: 'takeOver' };
  const untilMs = endOf(lease);
  return untilMs <= nowMs ? { kind: 'takeOver' } : { kind: 'taken', holder: holderIdentity, untilMs };
}

/** @returns until when a lease is its holder's by the times in it, in ms since the epoch. */
export function leaseEnd({ spec }: Lease): number {
  const { renewTime, acquireTime, leaseDurationSeconds = 0 } = spec ?? {};
  const since = Date.parse(renewTime ?? acquireTime ?? '');
  // Without a time it is unknown whether it has expired, so it counts as held.
  return Number.isNaN(since) ? Number.POSITIVE_INFINITY : since + leaseDurationSeconds * 1000;
}

type LeaseOutcome = { readonly acquired: true } | { readonly acquired: false; readonly holder: string };

interface LeaseKnowledge {
  /** The lease as a cache has it; it saves a request where it is true still. `absent`: there is none. */
  readonly known?: Lease | 'absent';
  /**
   * When another holder's lease expires (lease-expiry.ts); absent: by its own times, for callers that look only once.
   */
  readonly endOf?: EndOfLease;
  /** ms since the epoch; absent: this machine's clock. */
  readonly now?: () => number;
}

/**
 * Acquires or renews a lease. Optimistic concurrency decides between concurrent candidates.
 *
 * @returns whose it is then.
 * @throws ApiError
 */
export async function acquireLease(
  client: ApiClient,
  request: LeaseRequest,
  signal: AbortSignal,
  { known, endOf = leaseEnd, now = Date.now }: LeaseKnowledge = {},
): Promise<LeaseOutcome> {
  const where = { namespace: request.namespace, signal };
  const write = (lease: Lease | undefined) => writeLease(client, request, lease, { endOf, now }, where);
  if (known !== undefined) {
    const outcome = await write(known === 'absent' ? undefined : known);
    if (!('outdated' in outcome)) return outcome;
  }
  const outcome = await write(await client.find(Leases, request.name, where));
  if (!('outdated' in outcome)) return outcome;
  const winner = await client.find(Leases, request.name, where);
  const holder = winner?.spec?.holderIdentity ?? '';
  if (holder !== '' && holder !== request.holder) return { acquired: false, holder };
  // Nobody was faster: something else refuses the write.
  if (winner === undefined || holder === '' || leaseEnd(winner) <= now()) throw outcome.outdated;
  return { acquired: true };
}

async function writeLease(
  client: ApiClient,
  request: LeaseRequest,
  lease: Lease | undefined,
  { endOf, now }: Required<Omit<LeaseKnowledge, 'known'>>,
  where: Where,
): Promise<LeaseOutcome | { readonly outdated: unknown }> {
  const at = new Date(now());
  const decision = decideLease(lease, request.holder, at.getTime(), endOf);
  if (decision.kind === 'taken') return { acquired: false, holder: decision.holder };
  try {
    if (lease === undefined) await client.create(Leases, newLease(request, at), where);
    else await client.replace(Leases, renewed(lease, decision.kind, request, at), where);
    return { acquired: true };
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return { outdated: error };
    throw error;
  }
}

/**
 * Releases a lease by deleting it, if this holder has it; a lease of another holder is not changed.
 *
 * @param known the lease as a cache has it; it saves a request where it is true still.
 * @throws ApiError
 */
export async function releaseLease(
  client: ApiClient,
  request: Omit<LeaseRequest, 'durationSeconds' | 'reason'>,
  signal: AbortSignal,
  known?: Lease,
): Promise<void> {
  const where = { namespace: request.namespace, signal };
  if (known !== undefined && (await deleteLease(client, request, known, where))) return;
  const lease = await client.find(Leases, request.name, where);
  // Where somebody writes it right then, an expired lease was taken over, and is no longer ours to release.
  if (lease !== undefined) await deleteLease(client, request, lease, where);
}

/** @returns false when the lease is another's, or has been written since it was read. */
async function deleteLease(
  client: ApiClient,
  { name, holder }: Pick<LeaseRequest, 'name' | 'holder'>,
  { metadata, spec }: Lease,
  where: Where,
): Promise<boolean> {
  if (spec?.holderIdentity !== holder) return false;
  const { resourceVersion } = metadata;
  try {
    await client.delete(Leases, name, {
      ...where,
      preconditions: resourceVersion === undefined ? undefined : { resourceVersion },
    });
    return true;
  } catch (error) {
    if (!isConflict(error)) throw error;
    return false;
  }
}

function newLease(request: LeaseRequest, now: Date) {
  const { namespace, name, holder, durationSeconds } = request;
  const notes = notesOf(request);
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace, name, annotations: notes },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: durationSeconds,
      acquireTime: microTime(now),
      renewTime: microTime(now),
      leaseTransitions: 0,
    },
  };
}

function renewed(
  lease: Lease,
  kind: 'renew' | 'takeOver' | 'create',
  request: LeaseRequest,
  now: Date,
): Lease {
  const { metadata } = lease;
  const notes = notesOf(request);
  const spec = leaseSpec(lease, kind, request, now);
  return notes === undefined
    ? { ...lease, spec }
    : { ...lease, metadata: { ...metadata, annotations: { ...metadata.annotations, ...notes } }, spec };
}

/** With the name of the holder, because a holder that does not know the annotations keeps those of its predecessor. */
function notesOf({
  holder,
  reason,
  version,
  machine,
}: LeaseRequest): Readonly<Record<string, string>> | undefined {
  if (reason === undefined && version === undefined && machine === undefined) return undefined;
  const noted = (text: string | undefined) => (text === undefined ? undefined : `${holder}: ${text}`);
  return present({
    [annotations.leaseReason]: noted(reason),
    [annotations.leaseVersion]: noted(version),
    [annotations.leaseMachine]: noted(machine),
  });
}

/**
 * @returns what a lease is held for; what somebody has written into the annotation without a holder as it is, and
 *   undefined where nobody has.
 */
export function reasonOfHolder({ metadata, spec }: Lease): string | undefined {
  const text = metadata.annotations?.[annotations.leaseReason];
  const holder = `${spec?.holderIdentity ?? ''}: `;
  return text?.startsWith(holder) ? text.slice(holder.length) : text;
}

/**
 * @returns the version of the process that holds a lease; undefined when nobody holds it, or the holder doesn't say.
 */
export function versionOfHolder(lease: Lease): string | undefined {
  return noteOfHolder(lease, annotations.leaseVersion);
}

/** @returns the Machine of Cluster API that the holder of a lease works on, as `namespace/name`. */
export function machineOfHolder(lease: Lease): string | undefined {
  return noteOfHolder(lease, annotations.leaseMachine);
}

function noteOfHolder({ metadata, spec }: Lease, annotation: string): string | undefined {
  const prefix = `${spec?.holderIdentity ?? ''}: `;
  const noted = metadata.annotations?.[annotation];
  return noted?.startsWith(prefix) === true && prefix !== ': ' ? noted.slice(prefix.length) : undefined;
}

function leaseSpec({ spec }: Lease, kind: 'renew' | 'takeOver' | 'create', request: LeaseRequest, now: Date) {
  const taken =
    kind === 'renew'
      ? {}
      : { acquireTime: microTime(now), leaseTransitions: (spec?.leaseTransitions ?? 0) + 1 };
  return {
    ...spec,
    holderIdentity: request.holder,
    leaseDurationSeconds: request.durationSeconds,
    renewTime: microTime(now),
    ...taken,
  };
}

/** MicroTime: RFC 3339 with six digits. */
function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}

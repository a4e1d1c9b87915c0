import type { Lease } from '../api/kubernetes.ts';
import { formatMachine, type MachineReference, parseMachine } from '../api/machine-owner.ts';
import { POWERED_OFF_LEASE_HOLDER } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { isRecent } from '../cluster/is-recent.ts';
import { acquireLease, type EndOfLease, leaseEnd, machineOfHolder, releaseLease } from '../cluster/lease.ts';
import { type Clocks, LeaseExpiry } from '../cluster/lease-expiry.ts';
import type { FreshCache } from './fresh-cache.ts';
import type { LeaseOptions } from './options.ts';

export interface NodeLeaseParts {
  readonly client: ApiClient;
  readonly cache: Pick<FreshCache<Lease>, 'get' | 'forget' | 'onChange'>;
  readonly options: LeaseOptions;
  readonly clocks: Clocks;
}

/**
 * s; as long as a NodeMaintenance's (medik8s/node-maintenance-operator, LeaseDuration): a machine stays off on request
 * while no operator runs, too.
 */
const POWERED_OFF_LEASE_SECONDS = 3600;

/** @returns what holds leases for machines that were switched off; the rollout holds others beside. */
export function poweredOffLeases(parts: NodeLeaseParts): NodeLeases {
  const options = {
    ...parts.options,
    holder: POWERED_OFF_LEASE_HOLDER,
    seconds: POWERED_OFF_LEASE_SECONDS,
  };
  return new NodeLeases({ ...parts, options });
}

/** Who holds the node lease. */
export type LeaseHolding =
  /** `since`: when it was taken, in ms since the epoch. */
  | { readonly by: 'us'; readonly since?: number }
  /** `left`: it was ours and ran out; the object is still there. */
  | { readonly by: 'nobody'; readonly left?: boolean }
  /** Held for the person who switched the machine off, so that no remediator powers it on. */
  | { readonly by: 'powered-off' }
  | { readonly by: 'other'; readonly holder: string };

/** @returns whether nothing of the rollout's may begin or go on under the lease. */
export function isTaken({ by }: LeaseHolding): boolean {
  return by === 'other' || by === 'powered-off';
}

/** medik8s' common lease names a node's lease so (medik8s/common, pkg/lease). */
const PREFIX = 'node-';

/** @returns the name of a node's lease. */
export function leaseNameOf(node: string): string {
  return `${PREFIX}${node}`;
}

/** @returns the node that a lease of this name is for; undefined for another kind of lease. */
export function nodeOfLease(lease: string): string | undefined {
  return lease.startsWith(PREFIX) ? lease.slice(PREFIX.length) : undefined;
}

/**
 * Who holds a lease at a moment. An expired lease is held by nobody; one without a time is held by its holder.
 *
 * @param now ms since the epoch.
 * @param endOfOthers when another's lease is over; by default what its times say.
 */
export function holdingOf(
  lease: Lease | undefined,
  holder: string,
  now: number,
  endOfOthers: EndOfLease = leaseEnd,
): LeaseHolding {
  const holderIdentity = lease?.spec?.holderIdentity ?? '';
  if (lease === undefined || holderIdentity === '') return { by: 'nobody' };
  const isOurs = holderIdentity === holder;
  const end = isOurs ? leaseEnd(lease) : endOfOthers(lease);
  if (end <= now) return { by: 'nobody', ...(isOurs ? { left: true } : {}) };
  if (!isOurs) return othersHolding(holderIdentity);
  const since = Date.parse(lease.spec?.acquireTime ?? '');
  return { by: 'us', ...(Number.isNaN(since) ? {} : { since }) };
}

function othersHolding(holder: string): LeaseHolding {
  return holder === POWERED_OFF_LEASE_HOLDER ? { by: 'powered-off' } : { by: 'other', holder };
}

/** Exclusive right to disrupt nodes: one Lease per node, shared with the medik8s operators. */
export class NodeLeases {
  readonly #parts: NodeLeaseParts;
  readonly #expiry: LeaseExpiry;

  /** @param parts with a cache that is not started yet, so that every change is observed when it happens. */
  constructor(parts: NodeLeaseParts) {
    this.#parts = parts;
    this.#expiry = new LeaseExpiry(parts.clocks);
    parts.cache.onChange(({ type, object }) => {
      if (type === 'DELETED') this.#expiry.forget(object);
      else this.#expiry.see(object);
    });
  }

  /** ms after which a lease that is held is due to be renewed. */
  get renewAfter(): number {
    return (this.#parts.options.seconds * 1000) / 3;
  }

  /** @returns who holds a node's lease as far as the cache knows. */
  holding(node: string): LeaseHolding {
    const { options, clocks } = this.#parts;
    return holdingOf(this.#cached(node), options.holder, clocks.now(), this.#endOf);
  }

  /** @returns whether the lease names us, whether or not it has run out since. */
  isOurs(node: string): boolean {
    const holding = this.holding(node);
    return holding.by === 'us' || (holding.by === 'nobody' && holding.left === true);
  }

  /** @returns the Machine that is noted in a lease of ours; undefined for none. */
  machineOf(node: string): MachineReference | undefined {
    const lease = this.#cached(node);
    const noted = lease === undefined || !this.isOurs(node) ? undefined : machineOfHolder(lease);
    return noted === undefined ? undefined : parseMachine(noted);
  }

  /** @returns since when the lease is ours, in ms since the epoch; now, where the cache does not know. */
  takenAt(node: string): number {
    const holding = this.holding(node);
    return (holding.by === 'us' ? holding.since : undefined) ?? this.#parts.clocks.now();
  }

  /**
   * Acquires a node's lease, or renews it once a third of its duration is over.
   *
   * @param what `reason`: what for, in words. `machine`: the one of Cluster API that the node is.
   * @returns whose it is then: ours, or another's who was first.
   * @throws ApiError
   */
  async acquire(
    node: string,
    { reason, machine }: { readonly reason: string; readonly machine?: MachineReference | undefined },
    signal: AbortSignal,
  ): Promise<LeaseHolding> {
    const { client, options, clocks } = this.#parts;
    if (this.#isFresh(node)) return { by: 'us' };
    const outcome = await acquireLease(
      client,
      {
        namespace: options.namespace,
        name: leaseNameOf(node),
        holder: options.holder,
        durationSeconds: options.seconds,
        reason,
        machine: machine && formatMachine(machine),
      },
      signal,
      { known: this.#cached(node) ?? 'absent', endOf: this.#endOf, now: clocks.now },
    );
    return outcome.acquired ? { by: 'us' } : othersHolding(outcome.holder);
  }

  /** Releases a node's lease if it is ours. @throws ApiError */
  async release(node: string, signal: AbortSignal): Promise<void> {
    const { client, cache, options } = this.#parts;
    const known = this.#cached(node);
    await releaseLease(
      client,
      { namespace: options.namespace, name: leaseNameOf(node), holder: options.holder },
      signal,
      known,
    );
    // Until the watch shows the deletion, the node would look at work and be released a second time.
    if (known !== undefined) cache.forget(known);
  }

  #isFresh(node: string): boolean {
    const renewedAt = Date.parse(this.#cached(node)?.spec?.renewTime ?? '');
    // After a clock was set back, others, whose clocks were not, would see the lease run out.
    return this.holding(node).by === 'us' && isRecent(renewedAt, this.#parts.clocks.now(), this.renewAfter);
  }

  readonly #endOf: EndOfLease = (lease) => this.#expiry.endOf(lease);

  #cached(node: string): Lease | undefined {
    const { cache, options } = this.#parts;
    return cache.get(leaseNameOf(node), options.namespace);
  }
}

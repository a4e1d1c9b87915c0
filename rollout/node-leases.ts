import type { Lease } from '../api/kubernetes.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { acquireLease, leaseEnd, releaseLease } from '../cluster/lease.ts';
import type { FreshCache } from './fresh-cache.ts';
import type { RolloutOptions } from './options.ts';
import type { LeaseHolding } from './pools/node-state.ts';

export interface NodeLeaseParts {
  readonly client: ApiClient;
  readonly cache: Pick<FreshCache<Lease>, 'get' | 'forget'>;
  readonly options: Pick<RolloutOptions, 'leaseNamespace' | 'leaseHolder' | 'leaseSeconds'>;
  /** ms since the epoch. */
  readonly now: () => number;
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
 * Who holds a lease at a moment. An expired lease is nobody's; one that says nothing of its end is its
 * holder's.
 *
 * @param now ms since the epoch.
 */
export function holdingOf(lease: Lease | undefined, holder: string, now: number): LeaseHolding {
  const holderIdentity = lease?.spec?.holderIdentity ?? '';
  if (lease === undefined || holderIdentity === '') return { by: 'nobody' };
  const isOurs = holderIdentity === holder;
  if (leaseEnd(lease) <= now) return { by: 'nobody', ...(isOurs ? { left: true } : {}) };
  if (!isOurs) return { by: 'other', holder: holderIdentity };
  const since = Date.parse(lease.spec?.acquireTime ?? '');
  return { by: 'us', ...(Number.isNaN(since) ? {} : { since }) };
}

/** Exclusive right to disrupt nodes: one Lease per node, shared with the medik8s operators. */
export class NodeLeases {
  readonly #parts: NodeLeaseParts;

  constructor(parts: NodeLeaseParts) {
    this.#parts = parts;
  }

  /** @returns who holds a node's lease as far as the cache knows. */
  holding(node: string): LeaseHolding {
    return holdingOf(this.#cached(node), this.#parts.options.leaseHolder, this.#parts.now());
  }

  /** @returns whether the lease names us, whether or not it has run out since. */
  isOurs(node: string): boolean {
    const holding = this.holding(node);
    return holding.by === 'us' || (holding.by === 'nobody' && holding.left === true);
  }

  /** @returns since when the lease is ours, in ms since the epoch; now, where the cache does not know. */
  takenAt(node: string): number {
    const holding = this.holding(node);
    return (holding.by === 'us' ? holding.since : undefined) ?? this.#parts.now();
  }

  /**
   * Takes a node's lease, or renews it once a third of its time is over.
   *
   * @param reason what for, in words.
   * @returns whose it is then: ours, or another's who was first.
   * @throws ApiError
   */
  async hold(node: string, reason: string, signal: AbortSignal): Promise<LeaseHolding> {
    const { client, options } = this.#parts;
    if (this.#isFresh(node)) return { by: 'us' };
    const outcome = await acquireLease(
      client,
      {
        namespace: options.leaseNamespace,
        name: leaseNameOf(node),
        holder: options.leaseHolder,
        durationSeconds: options.leaseSeconds,
        reason,
      },
      signal,
      this.#cached(node) ?? 'absent',
    );
    return outcome.held ? { by: 'us' } : { by: 'other', holder: outcome.holder };
  }

  /** Gives a node's lease back where it is ours. @throws ApiError */
  async release(node: string, signal: AbortSignal): Promise<void> {
    const { client, cache, options } = this.#parts;
    const known = this.#cached(node);
    await releaseLease(
      client,
      { namespace: options.leaseNamespace, name: leaseNameOf(node), holder: options.leaseHolder },
      signal,
      known,
    );
    // Until the watch says so the node would look as if it were at work, and be freed a second time.
    if (known !== undefined) cache.forget(known);
  }

  #isFresh(node: string): boolean {
    const renewed = Date.parse(this.#cached(node)?.spec?.renewTime ?? '');
    const { leaseSeconds } = this.#parts.options;
    return this.holding(node).by === 'us' && renewed + (leaseSeconds * 1000) / 3 > this.#parts.now();
  }

  #cached(node: string): Lease | undefined {
    const { cache, options } = this.#parts;
    return cache.get(leaseNameOf(node), options.leaseNamespace);
  }
}

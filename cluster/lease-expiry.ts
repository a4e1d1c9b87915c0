import type { Lease } from '../api/kubernetes.ts';
import { keyOf } from './informer.ts';
import { leaseEnd } from './lease.ts';

/** Both in ms. */
export interface Clocks {
  /** Since the epoch; the machine's administrator may set it. */
  readonly now: () => number;
  /** Since any moment; nobody can set it. */
  readonly monotonic: () => number;
}

export const systemClocks: Clocks = { now: Date.now, monotonic: () => performance.now() };

/**
 * ms for which a lease that looks expired when it is first seen is left to its holder all the same: as long as a node
 * lease of ours lasts, and longer than a host takes to set its clock. Where the lease itself is shorter, that is
 * enough.
 */
const PATIENCE = 300_000;

/** One state of a lease; `until` by the clock that nobody can set. */
interface ObservedLease {
  readonly state: string;
  readonly until: number;
}

/**
 * When leases of others expire, by this process's own observation.
 *
 * medik8s' common lease compares the time of the last renewal with the taker's clock alone (pkg/lease, isValidLease),
 * so that a clock that is set forward takes a node away from the holder that works on it. client-go's leader election
 * counts from when it saw the lease change, and by a monotonic clock (tools/leaderelection, isLeaseValid); so does
 * this, for a lease that it saw change. Of one that was there before it looked, what is left by the clocks of both is
 * believed within limits: its whole duration again would keep a node for hours whose maintenance ended just then.
 */
export class LeaseExpiry {
  readonly #clocks: Clocks;
  readonly #observed = new Map<string, ObservedLease>();

  constructor(clocks: Clocks = systemClocks) {
    this.#clocks = clocks;
  }

  /** Observes a lease of another holder; the sooner after each change, the sooner its expiry is known. */
  see(lease: Lease): void {
    this.#look(lease);
  }

  /** A lease of that name that is created again starts a new observation. */
  forget({ metadata }: Lease): void {
    this.#observed.delete(keyOf(metadata));
  }

  /** @returns until when the lease is its holder's, in ms since the epoch as this machine's clock counts now. */
  endOf(lease: Lease): number {
    const { now, monotonic } = this.#clocks;
    return now() + this.#look(lease).until - monotonic();
  }

  #look(lease: Lease): ObservedLease {
    const key = keyOf(lease.metadata);
    const before = this.#observed.get(key);
    const state = stateOf(lease);
    if (before?.state === state) return before;
    const observed = { state, until: this.#clocks.monotonic() + this.#timeLeft(lease, before !== undefined) };
    this.#observed.set(key, observed);
    return observed;
  }

  #timeLeft(lease: Lease, sawItChange: boolean): number {
    const left = leaseEnd(lease) - this.#clocks.now();
    if (left === Number.POSITIVE_INFINITY) return left;
    const whole = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    if (sawItChange) return whole;
    return Math.min(Math.max(left, PATIENCE), whole);
  }
}

/** What a holder changes by renewing; annotations and owners are no sign of life. */
function stateOf({ spec = {} }: Lease): string {
  return JSON.stringify([spec.holderIdentity, spec.renewTime, spec.acquireTime, spec.leaseDurationSeconds]);
}

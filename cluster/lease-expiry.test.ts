import { expect, test } from 'vitest';
import type { Lease } from '../api/kubernetes.ts';
import { LeaseExpiry } from './lease-expiry.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.parse('2026-06-01T00:00:00Z');

/** Of another, renewed at a moment of our clock that is so many ms after the start. */
const lease = (renewedAt: number, minutes = 5): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a', namespace: 'medik8s-leases' },
  spec: {
    holderIdentity: 'them',
    renewTime: new Date(START + renewedAt).toISOString(),
    leaseDurationSeconds: minutes * 60,
  },
});

/** An observer with clocks that go on together, and one that can be set beside. */
function observer() {
  let passed = 0;
  let set = 0;
  const now = () => START + passed + set;
  const expiry = new LeaseExpiry({ now, monotonic: () => 7_000 + passed });
  return {
    expiry,
    pass: (ms: number) => {
      passed += ms;
    },
    setClock: (ms: number) => {
      set += ms;
    },
    isOver: (seen: Lease) => expiry.endOf(seen) <= now(),
  };
}

/** @returns ms after which the lease is over, to the minute. */
function lasts({ pass, isOver }: ReturnType<typeof observer>, seen: Lease): number {
  for (let minute = 0; minute < 600; minute += 1) {
    if (isOver(seen)) return minute * MINUTE;
    pass(MINUTE);
  }
  return Number.POSITIVE_INFINITY;
}

test.each([
  ['just renewed', lease(0), 5 * MINUTE],
  ['that has a while to go', lease(-HOUR, 120), HOUR],
  ['that looks expired: its holder has time to show that it is there', lease(-HOUR), 5 * MINUTE],
  ['that looks expired, and is a short one', lease(-HOUR, 1), MINUTE],
  ['of long duration that looks expired: not all of it again', lease(-3 * HOUR, 60), 5 * MINUTE],
  ['of a holder whose clock is ahead: no longer than it lasts', lease(HOUR), 5 * MINUTE],
])('a lease %s', (_what, seen, ms) => {
  expect(lasts(observer(), seen)).toBe(ms);
});

test('one without a time is its holder’s', () => {
  const { spec, ...rest } = lease(0);
  const { renewTime: _none, ...timeless } = spec ?? {};
  expect(lasts(observer(), { ...rest, spec: timeless })).toBe(Number.POSITIVE_INFINITY);
});

test('a clock that is set forward takes nothing from its holder, and one that is set back keeps nothing', () => {
  for (const jump of [2 * HOUR, -2 * HOUR]) {
    const seer = observer();
    seer.expiry.see(lease(0));
    seer.setClock(jump);
    expect(lasts(seer, lease(0))).toBe(5 * MINUTE);
  }
});

test('a holder whose clock is behind keeps what it renews', () => {
  const seer = observer();
  for (let minute = 0; minute < 60; minute += 1) {
    expect(seer.isOver(lease(minute * MINUTE - HOUR, 2))).toBe(false);
    seer.pass(MINUTE);
  }
  expect(lasts(seer, lease(59 * MINUTE - HOUR, 2))).toBe(MINUTE);
});

test('a lease that was deleted says nothing of the next of its name', () => {
  const seer = observer();
  seer.expiry.see(lease(-2 * HOUR, 60));
  seer.expiry.forget(lease(-2 * HOUR, 60));
  expect(lasts(seer, lease(-HOUR, 60))).toBe(5 * MINUTE);
});

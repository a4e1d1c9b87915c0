import { describe, expect, it } from 'vitest';
import { UNREPORTED_STATUS } from '../../api/object.ts';
import { condition } from '../../test/fixtures/objects.ts';
import { type CordonReport, withCordon, withoutCordon } from './drain-conditions.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const status = { bootID: 'b', conditions: [condition('UpdatePrepared')] };
const report = (drain: CordonReport['drain'], isStuck = false): CordonReport => ({
  why: 'by us',
  drain,
  isStuck,
});
const said = (drain: CordonReport['drain'], isStuck = false) =>
  withCordon(status, report(drain, isStuck), NOW)?.conditions?.map(
    ({ type, status: value, reason, message }) => `${type} ${value} ${reason} ${message}`,
  );

describe('the conditions of a cordoned node', () => {
  it('stand beside the daemon’s', () => {
    expect(said({ kind: 'unneeded' })).toEqual([
      'UpdatePrepared True UpdatePrepared ',
      'Cordoned True Updating by us',
    ]);
    expect(said({ kind: 'drained' })?.at(-1)).toMatch(/^Drained True Drained/);
  });

  it('are not those of a node whose daemon has not reported', () => {
    for (const unreported of [undefined, UNREPORTED_STATUS]) {
      expect(withCordon(unreported, report({ kind: 'unneeded' }), NOW)).toBeUndefined();
    }
  });

  it('name the pod and the budget that block a drain', () => {
    const blocked = [{ pod: 'shop/db-0', reason: 'PodDisruptionBudget db (allows 0 disruptions)' }];
    expect(said({ kind: 'draining', terminating: ['shop/web'], blocked })?.at(-1)).toBe(
      "Drained Unknown DrainBlocked The node is being drained; pod shop/db-0 can't be evicted: PodDisruptionBudget db (allows 0 disruptions)",
    );
  });

  it('have the pods that block a drain in a field, until none does', () => {
    const blocked = Array.from({ length: 21 }, (_, index) => ({
      pod: `shop/db-${index}`,
      reason: 'a budget',
    }));
    const during = withCordon(status, report({ kind: 'draining', terminating: [], blocked }), NOW);
    expect(during?.drain).toEqual({ blockedBy: blocked.slice(0, 20) });
    const after = [
      withCordon(during, report({ kind: 'drained' }), NOW),
      withCordon(during, report({ kind: 'draining', terminating: ['shop/a'], blocked: [] }), NOW),
      withoutCordon(during),
    ];
    for (const each of after) expect(each).not.toHaveProperty('drain');
  });

  it('name pods that end only when they take too long, so that not every look writes', () => {
    const draining = (pod: string) => ({ kind: 'draining', terminating: [pod], blocked: [] }) as const;
    expect(said(draining('shop/a'))).toEqual(said(draining('shop/b')));
    expect(said(draining('shop/a'), true)?.at(-1)).toMatch(
      /DrainBlocked .*1 pod still terminating: shop\/a$/,
    );
  });

  it('go when the node is in service again, and leave no trace', () => {
    expect(withoutCordon(withCordon(status, report({ kind: 'drained' }), NOW))).toEqual(status);
    expect(withoutCordon(status)).toBe(status);
  });

  it('wait for the daemon to speak first', () => {
    expect(withCordon(undefined, report({ kind: 'drained' }), NOW)).toBeUndefined();
  });
});

import { expect, it } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { aPool, aRenderedConfig } from '../../test/fixtures/objects.ts';
import { expiredRenderings, isRenderedFor, poolConfiguration, sameConfiguration } from './pool-rendering.ts';

const rendered = (day: number): MachineConfig => ({
  ...aRenderedConfig(`rendered-${day}`),
  metadata: { name: `rendered-${day}`, creationTimestamp: `2026-01-0${day}T00:00:00Z` },
});
const all = [4, 1, 3, 5, 2].map(rendered);
const namesOf = (configs: readonly MachineConfig[]) => configs.map(({ metadata }) => metadata.name);

it('rendered configs go when nobody uses them and newer ones are kept', () => {
  expect(namesOf(expiredRenderings(all, new Set(), 2))).toEqual(['rendered-3', 'rendered-2', 'rendered-1']);
  expect(namesOf(expiredRenderings(all, new Set(['rendered-1', 'rendered-5']), 2))).toEqual(['rendered-2']);
  expect(expiredRenderings(all, new Set(), 5)).toEqual([]);
});

it('a rendered config is a pool’s when that very pool is its controller', () => {
  const pool = aPool('worker');
  const owner = {
    apiVersion: 'v1',
    kind: 'MachineConfigPool',
    name: 'worker',
    uid: 'uid-worker',
    controller: true,
  };
  const ownedBy = (more: Partial<typeof owner>): MachineConfig => ({
    ...rendered(1),
    metadata: { name: 'r', ownerReferences: [{ ...owner, ...more }] },
  });
  expect(isRenderedFor(pool, ownedBy({}))).toBe(true);
  expect(isRenderedFor(pool, ownedBy({ uid: 'of an earlier pool' }))).toBe(false);
  expect(isRenderedFor(pool, ownedBy({ name: 'infra' }))).toBe(false);
  expect(isRenderedFor(pool, rendered(1))).toBe(false);
});

it('a configuration is the same when it names the same merge in the same order', () => {
  const one = poolConfiguration('r', ['a', 'b']);
  expect(sameConfiguration(one, poolConfiguration('r', ['a', 'b']))).toBe(true);
  expect(sameConfiguration(one, poolConfiguration('r', ['b', 'a']))).toBe(false);
  expect(sameConfiguration(undefined, one)).toBe(false);
});

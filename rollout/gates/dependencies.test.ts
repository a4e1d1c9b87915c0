import { describe, expect, it } from 'vitest';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { present } from '../../api/present.ts';
import { aMachineOSConfig, aPool, condition, LONG_AGO } from '../../test/fixtures/objects.ts';
import { awaitedPools, type Dependency, dependencyProblems } from './dependencies.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');

/** @param on the names of pools; absent: none. */
function pool(name: string, on?: string, status: MachineConfigPool['status'] = updatedTo('rendered-1')) {
  const shale = on === undefined ? {} : { dependsOn: on.split(',') };
  return { ...aPool(name, { configuration: { name: 'rendered-1' }, shale }), ...present({ status }) };
}
function updatedTo(config: string): MachineConfigPool['status'] {
  return { observedGeneration: 1, configuration: { name: config }, conditions: [condition('Updated')] };
}
const lookup = (...pools: readonly MachineConfigPool[]) => {
  const byName = new Map(pools.map((each) => [each.metadata.name, each]));
  return (name: string) => byName.get(name);
};
/** What worker waits for, which depends on canary. */
const awaited = (canary: MachineConfigPool | undefined, more: Partial<Dependency> = {}) =>
  awaitedPools(
    'worker',
    lookup(pool('worker', 'canary'), ...(canary === undefined ? [] : [canary])),
    () => ({ pool: canary, renderingDue: false, bake: 0, ...more }),
    NOW,
  );
const WAITS = 'updates wait for 1 pool (spec.shale.dependsOn): pool canary ';

describe('what is waited for', () => {
  const layered = (observedGeneration: number) => {
    const { metadata, ...rest } = aMachineOSConfig('canary');
    return { ...rest, metadata: { ...metadata, generation: 2 }, status: { observedGeneration } };
  };
  it.each<[string, MachineConfigPool | undefined, Partial<Dependency>, string]>([
    ['a pool that is missing', undefined, {}, 'does not exist'],
    ['changes that are not rendered', pool('canary'), { renderingDue: true }, 'is about to be rendered'],
    ['a pool that nobody has looked at', pool('canary', undefined, {}), {}, 'is about to be rendered'],
    [
      'MachineConfigs that are refused',
      pool('canary', undefined, {
        ...updatedTo('rendered-1'),
        conditions: [condition('Updated'), condition('RenderDegraded')],
      }),
      {},
      "can't be rendered",
    ],
    [
      'an image that nobody has started to build',
      pool('canary'),
      { machineOSConfig: layered(1) },
      'waits for a build of its MachineOSConfig',
    ],
    [
      'a rollout',
      pool('canary', undefined, {
        ...updatedTo('rendered-1'),
        conditions: [condition('Updated', 'False'), { ...condition('Updating'), reason: 'RolledBack' }],
      }),
      {},
      'is not Updated (RolledBack)',
    ],
    [
      'a target whose rollout has not begun',
      pool('canary', undefined, updatedTo('rendered-0')),
      {},
      'is not Updated',
    ],
  ])('%s', (_what, canary, more, why) => {
    expect(awaited(canary, more)).toEqual({ reason: 'AwaitingPools', message: `${WAITS}${why}` });
  });

  it('nodes that bake, until a time', () => {
    const until = Date.parse(LONG_AGO) + 1_000_000_000_000;
    expect(awaited(pool('canary'), { bake: 1_000_000_000_000 })).toEqual({
      reason: 'AwaitingPools',
      message: `${WAITS}bakes until ${new Date(until).toISOString()}`,
      until,
    });
    expect(awaited(pool('canary'), { bake: Number.POSITIVE_INFINITY })?.until).toBeUndefined();
  });

  it('nothing, once the pool is Updated and has baked', () => {
    expect(awaited(pool('canary'), { bake: 60_000, machineOSConfig: layered(2) })).toBeUndefined();
  });

  it('every pool that is named, and no time where more than time is missing', () => {
    const of = lookup(pool('worker', 'canary,infra,edge'));
    const observed: Record<string, Dependency> = {
      canary: { pool: pool('canary'), renderingDue: false, bake: 0 },
      infra: { pool: pool('infra'), renderingDue: true, bake: 0 },
      edge: { pool: pool('edge'), renderingDue: false, bake: 1_000_000_000_000 },
    };
    const wait = awaitedPools('worker', of, (name) => observed[name] as Dependency, NOW);
    expect(wait?.message).toMatch(
      /^updates wait for 2 pools .*: pool infra is about .*, pool edge bakes until/,
    );
    expect(wait?.until).toBeUndefined();
  });
});

describe('a circle', () => {
  const of = lookup(pool('a', 'b'), pool('b', 'c,d'), pool('c', 'd'), pool('d', 'a'), pool('e', 'a'));
  it('is named by its shortest way, in every pool of it', () => {
    const text = 'pools depend on each other in a circle (spec.shale.dependsOn): ';
    expect(dependencyProblems('a', of)).toEqual([`no update starts: ${text}a -> b -> d -> a`]);
    expect(dependencyProblems('c', of)).toEqual([`no update starts: ${text}c -> d -> a -> b -> c`]);
    expect(awaitedPools('a', of, () => ({ pool: undefined, renderingDue: false, bake: 0 }), NOW)).toEqual({
      reason: 'DependencyCircle',
      message: `${text}a -> b -> d -> a`,
    });
  });

  it('is none of a pool that only depends on one', () => {
    expect(dependencyProblems('e', of)).toEqual([]);
  });

  it('of one pool is a circle, too', () => {
    expect(dependencyProblems('a', lookup(pool('a', 'a')))).toEqual([expect.stringMatching(/: a -> a$/)]);
  });
});

it('a pool that is missing is a problem before an update is to start', () => {
  expect(dependencyProblems('worker', lookup(pool('worker', 'canray')))).toEqual([
    'no update starts: spec.shale.dependsOn names pool canray, which does not exist',
  ]);
});

import { expect, it } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import type { LayeringCaches } from '../opt-in/observe-layering.ts';
import { SteppedWatch } from '../test/fixtures/stepped-watch.ts';
import { LAYERING_KEY, routeLayeringEvents } from './route-events.ts';

const LAYERING_DELAY = 2_000;

const SHARED = [
  'layeringSwitch',
  'pools',
  'machineConfigNodes',
  'machineConfigurations',
  'machineOSConfigs',
  'machineOSBuilds',
] as const;
const OWN = ['signingKeys', 'deployments', 'rights'] as const;
type Name = (typeof SHARED | typeof OWN)[number];

/** @returns what a change of one cache queues: the key, with the delay where there is one. */
function queuedBy(name: Name): string[] {
  const queued: string[] = [];
  const watches = Object.fromEntries(
    [...SHARED, ...OWN].map((each) => [each, new SteppedWatch<KubernetesObject>()]),
  ) as Record<Name, SteppedWatch<KubernetesObject>>;
  const { rights, ...caches } = watches;
  routeLayeringEvents(
    { shared: watches, ...caches, rights: [{ informer: rights }] } as unknown as LayeringCaches,
    {
      add: (key) => void queued.push(key),
      addAfter: (key, ms) => void queued.push(`${key} after ${ms} ms`),
    },
  );
  // The object of any of these kinds.
  const object = {
    apiVersion: 'v1',
    kind: 'Any',
    metadata: { name: 'any' },
    spec: { pool: { name: '' }, machineConfigPool: { name: '' }, machineOSConfig: { name: '' } },
  };
  watches[name].put(object);
  return queued;
}

it.each([...OWN, 'layeringSwitch', 'machineOSConfigs', 'machineOSBuilds'] as const)(
  '%s concern layering at once',
  (name) => {
    expect(queuedBy(name)).toEqual([LAYERING_KEY]);
  },
);

it.each(['pools', 'machineConfigNodes', 'machineConfigurations'] as const)(
  '%s change often, and concern it soon',
  (name) => {
    expect(queuedBy(name)).toEqual([`${LAYERING_KEY} after ${LAYERING_DELAY} ms`]);
  },
);

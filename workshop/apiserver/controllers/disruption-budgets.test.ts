import { expect, test } from 'vitest';
import type { Json } from '../json.ts';
import type { StoredObject } from '../stored-object.ts';
import { budgetStatus, covers } from './disruption-budgets.ts';

function pod(name: string, ready: boolean, labels: Record<string, string> = { app: 'a' }): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'x', uid: name, resourceVersion: '1', creationTimestamp: '', labels },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
}

function budget(spec: Record<string, Json>): StoredObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: {
      name: 'b',
      namespace: 'x',
      uid: 'b',
      resourceVersion: '1',
      creationTimestamp: '',
      generation: 2,
    },
    spec: { selector: { matchLabels: { app: 'a' } }, ...spec },
  };
}

test.each<[Record<string, Json>, boolean[], number]>([
  [{ minAvailable: 2 }, [true, true, true], 1],
  [{ minAvailable: 2 }, [true, true, false], 0],
  [{ minAvailable: '50%' }, [true, true, true], 1],
  [{ maxUnavailable: 1 }, [true, true, true], 1],
  [{ maxUnavailable: 1 }, [true, true, false], 0],
  [{ maxUnavailable: '50%' }, [true, true, true], 2],
  [{ maxUnavailable: 0 }, [true], 0],
  [{ minAvailable: 0 }, [], 0],
])('%j over pods ready %j allows %i disruptions', (spec, ready, allowed) => {
  const pods = ready.map((each, i) => pod(`p${i}`, each));
  expect(budgetStatus(budget(spec), [...pods, pod('other', true, {})], () => undefined)).toMatchObject({
    disruptionsAllowed: allowed,
    expectedPods: ready.length,
    observedGeneration: 2,
  });
});

test('an empty selector covers the whole namespace, a missing one nothing', () => {
  expect(covers(budget({ selector: {} }), pod('p', true, {}))).toBe(true);
  expect(covers(budget({ selector: null }), pod('p', true))).toBe(false);
});

test('a pod that was evicted and is not created again yet allows no other', () => {
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'd', controller: true },
  ];
  const owned = ['a', 'b'].map((name): StoredObject => {
    const each = pod(name, true);
    return { ...each, metadata: { ...each.metadata, ownerReferences } };
  });
  const allowed = (replicas: number) =>
    budgetStatus(budget({ maxUnavailable: 1 }), owned, (uid) => (uid === 'd' ? replicas : undefined))
      .disruptionsAllowed;
  expect([allowed(2), allowed(3)]).toEqual([1, 0]);
});

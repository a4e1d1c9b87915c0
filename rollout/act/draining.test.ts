import { describe, expect, it } from 'vitest';
import { type Pod, type PodDisruptionBudget, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type DrainOptions, defaultRolloutOptions } from '../options.ts';
import { drainRetryAfter, drainStep, formatDrain } from './drain-step.ts';

const signal = new AbortController().signal;
const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'o', uid: 'u', controller: true };

function pod(name: string, more: Partial<Pod['metadata']> = {}): Pod {
  const metadata = { name, namespace: 'n', labels: { app: name }, ownerReferences: [owner], ...more };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } };
}

function budget(
  name: string,
  selector: object | undefined,
  disruptionsAllowed?: number,
): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'n' },
    spec: selector === undefined ? {} : { selector },
    ...(disruptionsAllowed === undefined ? {} : { status: { disruptionsAllowed } }),
  } as PodDisruptionBudget;
}

/** @returns a drain of a node with these pods, and which evictions it asked for; `answers`: the status by pod. */
function drainOf(
  pods: readonly Pod[],
  {
    answers = {},
    budgets = [],
    options = {},
    words,
    byThen,
    retryAfterSeconds,
  }: {
    readonly answers?: Readonly<Record<string, number>>;
    readonly budgets?: readonly PodDisruptionBudget[];
    readonly options?: Partial<DrainOptions>;
    /** Of every answer that is no success. */
    readonly words?: string;
    /** What has the name of a pod once its eviction is asked for. */
    readonly byThen?: Pod;
    readonly retryAfterSeconds?: number;
  } = {},
) {
  const cluster = new MemoryCluster();
  for (const each of pods) cluster.put(Pods, each);
  for (const each of budgets) cluster.put(PodDisruptionBudgets, each);
  const evictions: {
    name: string;
    namespace: string;
    uid?: string | undefined;
    gracePeriodSeconds?: number | undefined;
  }[] = [];
  let open = 0;
  let most = 0;
  const client: ApiClient = {
    ...cluster.client(),
    evict: async (evicted, { gracePeriodSeconds } = {}) => {
      const { name } = evicted;
      evictions.push({ ...evicted, gracePeriodSeconds });
      open += 1;
      most = Math.max(most, open);
      await Promise.resolve();
      open -= 1;
      if (byThen !== undefined) cluster.put(Pods, byThen);
      const status = answers[name];
      if (status !== undefined)
        throw new ApiError(status, name, {
          reason: { 404: 'NotFound', 409: 'Conflict' }[status] ?? 'TooManyRequests',
          message: words,
          details: retryAfterSeconds === undefined ? undefined : { retryAfterSeconds },
        });
    },
  };
  const step = drainStep(client, 'a', { ...defaultRolloutOptions.drain, ...options }, signal);
  return { step, evictions, mostAtOnce: () => most };
}

describe('one step of a drain', () => {
  it('asks for the eviction of every pod that is to go, and for none that stays', async () => {
    const { step, evictions } = drainOf([
      pod('web'),
      pod('set', { ownerReferences: [{ ...owner, kind: 'DaemonSet' }] }),
      pod('ending', { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      pod('api'),
    ]);
    expect(await step).toEqual({
      kind: 'draining',
      terminating: ['n/api', 'n/ending', 'n/web'],
      blocked: [],
    });
    expect(evictions).toEqual([
      { name: 'web', namespace: 'n' },
      { name: 'api', namespace: 'n' },
    ]);
  });

  it('is the last one where every pod that is left may stay', async () => {
    expect(await drainOf([]).step).toEqual({ kind: 'drained' });
    const set = pod('set', { ownerReferences: [{ ...owner, kind: 'DaemonSet' }] });
    expect(await drainOf([set]).step).toEqual({ kind: 'drained' });
  });

  it('has a limit of ten evictions at a time', async () => {
    const { step, evictions, mostAtOnce } = drainOf(
      Array.from({ length: 25 }, (_, index) => pod(`p${index}`)),
    );
    await step;
    expect([evictions.length, mostAtOnce()]).toEqual([25, 10]);
    expect(new Set(evictions.map(({ name }) => name)).size).toBe(25);
  });

  it('overrides the grace period of pods only if it is set', async () => {
    const { step, evictions } = drainOf([pod('web')], { options: { gracePeriodSeconds: 0 } });
    await step;
    expect(evictions).toEqual([{ name: 'web', namespace: 'n', gracePeriodSeconds: 0 }]);
  });

  it('takes a pod that is gone already for evicted', async () => {
    expect(await drainOf([pod('web')], { answers: { web: 404 } }).step).toMatchObject({
      terminating: ['n/web'],
      blocked: [],
    });
  });

  it.each([
    ['gone where another has its name', 'uid-2', []],
    ['there where something else is in conflict', 'uid-1', [{ pod: 'n/db-0', reason: 'in conflict' }]],
  ])('takes a pod whose eviction is a conflict for %s', async (_what, uid, blocked) => {
    const { step } = drainOf([pod('db-0', { uid: 'uid-1' })], {
      answers: { 'db-0': 409 },
      words: 'in conflict',
      byThen: pod('db-0', { uid }),
    });
    expect(await step).toMatchObject({ blocked });
  });

  it('asks for the eviction of the pod that it has seen, and of no other that has its name by then', async () => {
    const { step, evictions } = drainOf([pod('db-0', { uid: 'uid-1' })]);
    await step;
    expect(evictions).toEqual([{ name: 'db-0', namespace: 'n', uid: 'uid-1' }]);
  });

  it.each([
    // Kubernetes 75957.
    [500, 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'],
    [403, 'admission webhook "evictions.example.org" denied the request: ask again later'],
    [429, 'admission webhook "evictions.example.org" denied the request: ask again later'],
    [500, 'Internal error occurred: failed calling webhook "evictions.example.org": connection refused'],
    [422, 'Pod "web" is invalid'],
  ])(
    'reports a pod whose eviction fails with %i in the words of the answer, and evicts the others',
    async (status, words) => {
      const budgets = [budget('healthy', {}, 3)];
      const { step, evictions } = drainOf(
        [...Array.from({ length: 12 }, (_, index) => pod(`a${index}`)), pod('web'), pod('z')],
        {
          budgets,
          answers: Object.fromEntries(
            ['web', ...Array.from({ length: 12 }, (_, index) => `a${index}`)].map((name) => [name, status]),
          ),
          words,
        },
      );
      expect(await step).toMatchObject({ kind: 'draining', terminating: ['n/z'] });
      const { blocked } = (await step) as { readonly blocked: readonly unknown[] };
      expect(blocked).toHaveLength(13);
      expect(blocked).toContainEqual({ pod: 'n/web', reason: words });
      expect(evictions).toHaveLength(14);
    },
  );

  it('waits for as long as the answers to all refused evictions ask for', async () => {
    const refused = { words: 'later', retryAfterSeconds: 10 };
    const both = drainOf([pod('a'), pod('b')], { answers: { a: 429, b: 429 }, ...refused });
    expect(await both.step).toMatchObject({ retryAfterMs: 10_000 });
    const none = drainOf([pod('a')], { answers: { a: 429 } });
    expect(await none.step).not.toHaveProperty('retryAfterMs');
  });

  it('fails with what is no answer of the API server', async () => {
    const cluster = new MemoryCluster();
    cluster.put(Pods, pod('web'));
    const client = { ...cluster.client(), evict: () => Promise.reject(new TypeError('a defect')) };
    await expect(drainStep(client, 'a', defaultRolloutOptions.drain, signal)).rejects.toThrow('a defect');
  });

  it.each<[string, PodDisruptionBudget[], string]>([
    ['no budget', [], 'the API server asks to retry later'],
    [
      'the budget that selects it',
      [budget('web', { matchLabels: { app: 'web' } }, 0), budget('other', { matchLabels: { app: 'x' } }, 0)],
      'PodDisruptionBudget web (allows 0 disruptions)',
    ],
    [
      'several budgets, one without a status',
      [budget('z', {}), budget('a', {}, 1), budget('none', undefined, 0)],
      'PodDisruptionBudget a (allows 1 disruption), z (allows 0 disruptions)',
    ],
  ])('names what refuses the eviction of a pod: %s', async (_what, budgets, why) => {
    const { step } = drainOf([pod('web'), pod('api')], { answers: { web: 429 }, budgets });
    expect(await step).toEqual({
      kind: 'draining',
      terminating: ['n/api'],
      blocked: [{ pod: 'n/web', reason: why }],
    });
  });

  it('reports the pods that the settings keep', async () => {
    const { step, evictions } = drainOf([pod('bare', { ownerReferences: [] })], {
      options: { evictUnmanagedPods: false },
    });
    expect(await step).toMatchObject({
      blocked: [{ pod: 'n/bare', reason: expect.stringMatching(/controller/) }],
    });
    expect(evictions).toEqual([]);
  });
});

it.each([
  [0, 1_000],
  [10_000, 1_000],
  [10_001, 1_000.1],
  [300_000, 30_000],
  [600_000, 60_000],
  [3_600_000, 60_000],
])('a drain that has taken %i ms is looked at again after %d ms', (elapsed, after) => {
  const options = { ...defaultRolloutOptions.drain, retrySeconds: { min: 1, max: 60 } };
  expect(drainRetryAfter(elapsed, options)).toBe(after);
});

describe('a drain in words', () => {
  const blocked = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ pod: `n/b${index}`, reason: 'no' }));
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n/t${index}`);
  it.each<[number, number, string]>([
    [0, 0, 'is being drained'],
    [0, 1, 'is being drained; 1 pod still terminating: n/t0'],
    [0, 4, 'is being drained; 4 pods still terminating: n/t0, n/t1, n/t2'],
    [1, 0, "is being drained; pod n/b0 can't be evicted: no"],
    [
      3,
      1,
      "is being drained; pod n/b0 can't be evicted: no; pod n/b1 can't be evicted: no; pod n/b2 can't be evicted: no; 1 pod still terminating: n/t0",
    ],
    [
      4,
      0,
      "is being drained; pod n/b0 can't be evicted: no; pod n/b1 can't be evicted: no; pod n/b2 can't be evicted: no; 1 more pod can't be evicted",
    ],
  ])('%i blocked, %i ending', (refused, ending, text) => {
    expect(formatDrain({ kind: 'draining', blocked: blocked(refused), terminating: names(ending) })).toBe(
      text,
    );
  });
});

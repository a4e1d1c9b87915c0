import { expect, test } from 'vitest';
import { decideRetry } from './decide-retry.ts';
import type { EngineError } from './engine/container-engine.ts';

const registry = { reason: 'RegistryUnavailable', temporary: true, retryAfterMs: undefined } as const;
const engine = { reason: 'EngineUnavailable', temporary: true, retryAfterMs: undefined } as const;

/** @returns seconds before each further attempt, until the build fails for good. */
function delays(failure: Parameters<typeof decideRetry>[1]): number[] {
  const all: number[] = [];
  for (let attempt = 1; attempt < 100; attempt += 1) {
    const decision = decideRetry(attempt, failure);
    if (decision.kind === 'giveUp') return all;
    expect(decision.of).toBeGreaterThan(attempt);
    all.push(decision.inMs / 1000);
  }
  throw new Error('it is retried for ever');
}

test('a temporary failure is retried with growing delays, and not for ever', () => {
  expect(delays(registry)).toEqual([1, 2, 4, 8]);
});

/** Whatever an engine can fail with. */
const engineReasons: Record<EngineError['reason'], string> = {
  EngineUnavailable: 'its machine or its pod starts',
  EngineDiskFull: 'images are removed',
  EngineFailed: 'it is restarted',
};

test.each(Object.keys(engineReasons) as EngineError['reason'][])('%s is retried over minutes', (reason) => {
  expect(delays({ ...engine, reason })).toEqual([15, 30, 60, 120, 240, 300]);
});

test.each(['BuildError', 'SecretUnusable', 'PoliciesChanged'] as const)(
  '%s is retried within half a minute',
  (reason) => {
    expect(delays({ ...registry, reason })).toEqual([1, 2, 4, 8]);
  },
);

test('a permanent failure is not retried', () => {
  for (const failure of [registry, engine]) expect(delays({ ...failure, temporary: false })).toEqual([]);
});

test('the last attempt is the one that the status announces', () => {
  expect(decideRetry(4, registry)).toEqual({ kind: 'retry', inMs: 8_000, of: 5 });
  expect(decideRetry(5, registry)).toEqual({ kind: 'giveUp' });
  expect(decideRetry(6, engine)).toEqual({ kind: 'retry', inMs: 300_000, of: 7 });
  expect(decideRetry(7, engine)).toEqual({ kind: 'giveUp' });
});

test.each([
  [1, 9_000, 9_000],
  [1, 3_600_000, 15_000],
  [4, 10, 8_000],
])(
  'attempt %i, of which the server asks for a pause of %i ms, is followed after %i ms',
  (attempt, asked, inMs) => {
    expect(decideRetry(attempt, { ...registry, retryAfterMs: asked })).toMatchObject({ inMs });
  },
);

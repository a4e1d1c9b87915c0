import { expect, test } from 'vitest';
import type { BuildFailureReason } from '../api/machine-os-build.ts';
import { decideRetry } from './decide-retry.ts';

const registry = { reason: 'RegistryUnavailable', temporary: true, retryAfterMs: undefined } as const;

/** @returns seconds before each further attempt, the first ten; fewer where the build fails for good before. */
function delays(failure: Parameters<typeof decideRetry>[1]): number[] {
  const all: number[] = [];
  for (let failures = 1; failures <= 10; failures += 1) {
    const decision = decideRetry(failures, failure);
    if (decision.kind === 'giveUp') return all;
    all.push(decision.inMs / 1000);
  }
  return all;
}

test.each<[BuildFailureReason, number[]]>([
  ['RegistryUnavailable', [1, 2, 4, 8, 16, 32, 64, 128, 240, 240]],
  ['APIServerUnavailable', [1, 2, 4, 8, 16, 32, 64, 128, 240, 240]],
  ['SecretUnusable', [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]],
  ['SecretNotAllowed', [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]],
  ['SigningKeyUnpublished', [1, 2, 4, 8, 8, 8, 8, 8, 8, 8]],
  ['EngineUnavailable', [15, 30, 60, 120, 240, 300, 300, 300, 300, 300]],
  ['EngineDiskFull', [15, 30, 60, 120, 240, 300, 300, 300, 300, 300]],
  ['EngineFailed', [15, 30, 60, 120, 240, 300]],
  ['UnexpectedContent', [1, 2, 4, 8]],
  ['BuildError', [1, 2, 4, 8]],
  ['PoliciesChanged', [1, 2, 4, 8]],
])('%s is retried after seconds %j', (reason, seconds) => {
  expect(delays({ ...registry, reason })).toEqual(seconds);
  expect(delays({ ...registry, reason, temporary: false })).toEqual([]);
});

test('what is away is waited for as long as it takes', () => {
  expect(decideRetry(10_000, registry)).toEqual({ kind: 'retry', inMs: 240_000 });
});

test('a registry that is away for two minutes is asked again within two minutes of its return', () => {
  let at = 0;
  let failures = 1;
  for (; at < 120; failures += 1) {
    const decision = decideRetry(failures, registry);
    if (decision.kind === 'giveUp') throw new Error('gave up');
    at += decision.inMs / 1000;
  }
  expect(at).toBeLessThan(240);
});

test('the attempts that are left are counted where they are limited', () => {
  const content = { ...registry, reason: 'UnexpectedContent' } as const;
  expect(decideRetry(1, content)).toEqual({ kind: 'retry', inMs: 1_000, left: 4 });
  expect(decideRetry(4, content)).toEqual({ kind: 'retry', inMs: 8_000, left: 1 });
  expect(decideRetry(5, content)).toEqual({ kind: 'giveUp' });
});

test.each([
  [1, 9_000, 9_000],
  [1, 3_600_000, 240_000],
  [4, 10, 8_000],
])(
  'failure %i, after which the server asks for a pause of %i ms, is followed after %i ms',
  (failures, asked, inMs) => {
    expect(decideRetry(failures, { ...registry, retryAfterMs: asked })).toMatchObject({ inMs });
  },
);

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { noPause, recordPauses } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import type { RegistryAccess } from './connection.ts';
import { createRegistryClient } from './registry-client.ts';
import {
  ATTEMPTS,
  ContentError,
  DigestMismatch,
  parseRetryAfter,
  RegistryError,
  retryDelay,
  withLaterFailure,
} from './registry-error.ts';

const signal = deadline(300_000);
const NOW = Date.parse('2026-01-01T00:00:00Z');

test.each([
  ['0', 0],
  ['120', 120_000],
  [' 5 ', 5_000],
  ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
  ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
  ['soon', undefined],
  ['-1', undefined],
  [undefined, undefined],
])('Retry-After %j is %j ms', (header, ms) => {
  expect(parseRetryAfter(header, NOW)).toBe(ms);
});

describe('a failure while another one is handled', () => {
  const later = new Error('the disk is full');
  test.each([
    ['of a registry', new RegistryError('no', { status: 507, code: 'DENIED' })],
    ['of contents', new ContentError('no')],
    ['of a digest', new DigestMismatch('no')],
  ])('is in the message of one %s, which stays what it is', (_what, first) => {
    const joined = withLaterFailure(first, later);
    expect(joined).toMatchObject({ ...first, message: 'no; then: the disk is full', cause: later });
    expect(Object.getPrototypeOf(joined)).toBe(Object.getPrototypeOf(first));
  });

  test('leaves any other as it is', () => {
    const first = new TypeError('no');
    expect(withLaterFailure(first, later)).toBe(first);
  });
});

describe('before the next attempt', () => {
  const failure = (status: number, retryAfterMs?: number) =>
    new RegistryError('no', { status, retryAfterMs });
  test.each([
    ['the pause doubles', 1, failure(503), 250],
    ['the pause doubles', 3, failure(0), 1_000],
    ['a longer one that is asked for is kept to', 1, failure(429, 30_000), 30_000],
    ['a shorter one is not', 2, failure(429, 0), 500],
    ['one of more than a minute is for the caller', 1, failure(429, 61_000), undefined],
    ['nothing helps a refusal', 1, failure(403), undefined],
    ['nothing helps after the last', ATTEMPTS, failure(503), undefined],
  ])('%s (attempt %i)', (_name, attempt, error, ms) => {
    expect(retryDelay(attempt, error)).toBe(ms);
  });

  test('a pause is never shorter than asked for, nor longer than a minute', () => {
    const attempts = fc.integer({ min: 1, max: ATTEMPTS });
    const asked = fc.option(fc.nat(120_000), { nil: undefined });
    fc.assert(
      fc.property(attempts, asked, (attempt, retryAfterMs) => {
        const ms = retryDelay(attempt, failure(503, retryAfterMs));
        if (ms === undefined) return;
        expect(ms).toBeGreaterThanOrEqual(retryAfterMs ?? 0);
        expect(ms).toBeLessThanOrEqual(60_000);
      }),
    );
  });
});

test('control characters of a registry are shown, and do nothing', async () => {
  const message = 'no\u001b[2J\r\nforged: line\u0007\u2028\u202eend\u0085';
  const host = await startScriptedRegistry((_request, response) =>
    response.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DE\u0000NIED', message }] })),
  );
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const error = await client.getManifest(parseReference(`${host}/os:1`), signal).catch((e: unknown) => e);
  expect(error).toMatchObject({
    code: 'DE\\u{0}NIED',
    message: expect.stringContaining(
      'no\\u{1b}[2J\\u{d}\\u{a}forged: line\\u{7}\\u{2028}\\u{202e}end\\u{85} (HTTP 403)',
    ),
  });
  expect(new ContentError('the index has \u009blinux').message).toBe('the index has \\u{9b}linux');
});

/**
 * Answers with each status in turn, and then with success.
 *
 * @returns what asks it, by a client that waits for nothing, or as it is told otherwise.
 */
async function registryThat(statuses: readonly number[], headers: Record<string, string> = {}) {
  const at: number[] = [];
  const host = await startScriptedRegistry((_request, response) => {
    at.push(performance.now());
    response.writeHead(statuses[at.length - 1] ?? 200, headers).end();
  });
  const pauses = recordPauses();
  const ask = (access: RegistryAccess = pauses) =>
    createRegistryClient({ plainHttp: new Set([host]), ...access }).hasBlob(
      parseReference(`${host}/os`),
      digestOf('content'),
      signal,
    );
  return { at, ask, pauses: pauses.asked };
}

test.each([429, 500, 502, 503, 504, 408])('a registry that answers %i is asked again', async (status) => {
  const { at, ask, pauses } = await registryThat([status]);
  expect(await ask()).toBe(true);
  expect(at).toHaveLength(2);
  expect(pauses).toEqual([250]);
});

test('a pause in seconds is kept to', async () => {
  const { ask, pauses } = await registryThat([429], { 'retry-after': '7' });
  expect(await ask()).toBe(true);
  expect(pauses).toEqual([7_000]);
});

test('a pause until a date is kept to', async () => {
  const until = Math.floor(Date.now() / 1000) * 1000 + 30_000;
  const { ask, pauses } = await registryThat([429], { 'retry-after': new Date(until).toUTCString() });
  const begun = Date.now();
  expect(await ask()).toBe(true);
  expect(pauses).toHaveLength(1);
  expect(pauses[0]).toBeLessThanOrEqual(until - begun);
  expect(pauses[0]).toBeGreaterThanOrEqual(until - Date.now());
});

test('a client waits that is not given another pause', async () => {
  const { at, ask } = await registryThat([503]);
  expect(await ask({})).toBe(true);
  const [first = 0, second = 0] = at;
  // A timer may fire a millisecond early.
  expect(second - first).toBeGreaterThan(245);
});

test('a pause of an hour is told to the caller at once', async () => {
  const { at, ask, pauses } = await registryThat([429, 429], { 'retry-after': '3600' });
  await expect(ask()).rejects.toMatchObject({ status: 429, temporary: true, retryAfterMs: 3_600_000 });
  expect(at).toHaveLength(1);
  expect(pauses).toEqual([]);
});

test('a registry that never has time is given up', async () => {
  const { at, ask, pauses } = await registryThat([503, 503, 503, 503, 503]);
  await expect(ask()).rejects.toMatchObject({ status: 503, temporary: true });
  expect(at).toHaveLength(ATTEMPTS);
  expect(pauses).toEqual([250, 500, 1_000]);
});

test('a registry that takes a request and says nothing is given up', async () => {
  let asked = 0;
  const host = await startScriptedRegistry(() => {
    asked += 1;
  });
  const silenceMs = patience(50);
  const client = createRegistryClient({ plainHttp: new Set([host]), silenceMs, pause: noPause });
  const asking = client.hasBlob(parseReference(`${host}/os`), digestOf('content'), signal);
  await expect(asking).rejects.toMatchObject({ status: 0, temporary: true });
  await expect(asking).rejects.toThrow(`sent nothing for ${silenceMs / 1000} s`);
  expect(asked).toBe(ATTEMPTS);
});

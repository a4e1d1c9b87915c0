import { describe, expect, it, test } from 'vitest';
import { ApiError, ApiUnreachable } from './api-client.ts';
import { failureOf, isNotDone, wordsOf } from './failure.ts';

const answer = (status: number, reason = '', retryAfterSeconds?: number) =>
  new ApiError(status, 'patch Node a', {
    reason,
    message: 'no',
    ...(retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } }),
  });

describe('a failure', () => {
  it.each<[string, unknown, string]>([
    ['a forbidden request', answer(403), 'Refused'],
    ['an object that the server does not accept', answer(422), 'Refused'],
    ['a namespace that does not exist', answer(404, 'NotFound'), 'Refused'],
    ['a newer version', answer(409, 'Conflict'), 'Conflict'],
    ['a name that is taken', answer(409, 'AlreadyExists'), 'Refused'],
    ['a server with too many requests', answer(429), 'Throttled'],
    ['a request that took too long to arrive', answer(408), 'Unavailable'],
    ['a webhook that is away', answer(500), 'Unavailable'],
    ['a server that is away', new ApiUnreachable('patch Node a', new Error('no')), 'Unavailable'],
    ['a defect', new TypeError('patch Node a: no'), 'Unexpected'],
    [
      'several, of which one is no conflict',
      new AggregateError([answer(409, 'Conflict'), answer(403)]),
      'Refused',
    ],
    ['several conflicts', new AggregateError([answer(409, 'Conflict')]), 'Conflict'],
  ])('%s', (_what, error, kind) => {
    expect(failureOf(error)).toEqual({ kind, why: 'patch Node a: no' });
  });

  it('waits for as long as the server asks for, five minutes at most', () => {
    expect(failureOf(answer(429, '', 7)).retryAfterMs).toBe(7_000);
    expect(failureOf(answer(429, '', 86_400)).retryAfterMs).toBe(300_000);
    expect(failureOf(answer(429, '', 0))).not.toHaveProperty('retryAfterMs');
  });
});

test.each([
  [answer(403), true],
  [answer(500), true],
  [answer(504), false],
  [new ApiUnreachable('x', new Error('no answer')), false],
])('whether a write was certainly not done: %s', (error, isSo) => {
  expect(isNotDone(error)).toBe(isSo);
});

test('words are one line of a limited length, without what may be the content of a file', () => {
  expect(wordsOf('a\n  b;\tc')).toBe('a b, c');
  expect(wordsOf(`Invalid value: "${'x'.repeat(200)}": too long`)).toBe('Invalid value: "…": too long');
  expect(wordsOf('Invalid value: "short"')).toBe('Invalid value: "short"');
  expect(wordsOf('failed calling webhook: Post "https://ann:pw@hooks.example.org/": refused')).toBe(
    'failed calling webhook: Post "https://…@hooks.example.org/": refused',
  );
  expect(wordsOf('word '.repeat(1_000))).toHaveLength(500);
});

import { describe, expect, test } from 'vitest';
import { judgeLeaseTimes, judgeServer } from './check-api-server.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const levels = (found: readonly { readonly level: string }[]) => found.map(({ level }) => level);
const facts = { version: 'v1.33.1', minor: 33, time: NOW, localTime: NOW };

describe('the API server', () => {
  test.each<[string, Partial<typeof facts>, string[]]>([
    ['as it should be', {}, ['ok', 'ok']],
    ['of an old version', { version: 'v1.27.3', minor: 27 }, ['failure', 'ok']],
    ['whose clock is a little ahead', { time: NOW + 4_000 }, ['ok', 'ok']],
    ['whose clock is far behind', { time: NOW - 90_000 }, ['ok', 'warning']],
  ])('%s', (_, more, expected) => {
    expect(levels(judgeServer({ ...facts, ...more }))).toEqual(expected);
  });
});

describe('leases renewed', () => {
  test.each<[string, string | undefined, string[], boolean?]>([
    ['just now', '2026-11-20T10:00:01.000000Z', ['ok']],
    ['long ago, by a node that is gone', '2026-11-19T10:00:00.000000Z', ['ok'], false],
    ['long ago, by a node that is Ready', '2026-11-20T09:58:00.000000Z', ['failure']],
    ['in a little while', '2026-11-20T10:00:30.000000Z', ['warning']],
    ['in an hour', '2026-11-20T11:00:00.000000Z', ['failure']],
    ['never', undefined, ['ok']],
  ])('%s', (_, renewTime, expected, isAlive = true) => {
    expect(levels(judgeLeaseTimes([{ of: 'node a', renewTime, isAlive }], NOW))).toEqual(expected);
  });
});

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ApiError, ApiUnreachable } from './api-client.ts';
import { untilAnswered } from './until-answered.ts';

const log = pino({ level: 'silent' });
const backoff = { firstMs: 1, longestMs: 1 };
const refused = new ApiUnreachable('get Pod', new Error('connect ECONNREFUSED'));

test('an API server that is away is asked again until it answers', async () => {
  const answers = [refused, new ApiError(503, 'get Pod', {}), 'here'];
  const ask = async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const { signal } = new AbortController();
  expect(await untilAnswered(ask, { log, signal, backoff })).toBe('here');
  expect(answers).toEqual([]);
});

test('an answer that stays as it is ends the asking', async () => {
  const forbidden = new ApiError(403, 'get Pod', { reason: 'Forbidden' });
  let asked = 0;
  const ask = () => {
    asked += 1;
    return Promise.reject(forbidden);
  };
  await expect(untilAnswered(ask, { log, signal: new AbortController().signal, backoff })).rejects.toBe(
    forbidden,
  );
  expect(asked).toBe(1);
});

test('a process that stops waits no longer', async () => {
  const stop = new AbortController();
  const reason = new Error('stopped by SIGTERM');
  const ask = () => {
    stop.abort(reason);
    return Promise.reject(refused);
  };
  await expect(untilAnswered(ask, { log, signal: stop.signal })).rejects.toBe(reason);
});

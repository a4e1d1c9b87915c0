import { expect, test } from 'vitest';
import { ApiError, ApiUnreachable } from '../../cluster/api-client.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import { secretWarnings } from './switch-warnings.ts';

const { signal } = new AbortController();
const clientThatThrows = (error: Error) => {
  const refuse = () => Promise.reject(error);
  return answeringClient({ find: refuse, get: refuse });
};
const warnings = (error: Error) =>
  secretWarnings(clientThatThrows(error), 'shale-system', ['push', 'push'], signal);

test('a Secret that can not be read while the API server is away is a warning: the switch is written already', async () => {
  expect(await warnings(new ApiUnreachable('get Secret push', new Error('socket hang up')))).toEqual([
    "Secret shale-system/push can't be checked: get Secret push: socket hang up",
  ]);
});

test('anyone who may not read Secrets may enable layering, and any other answer is an error', async () => {
  const answer = (status: number) => new ApiError(status, 'get Secret push', {});
  expect(await warnings(answer(403))).toEqual([]);
  await expect(warnings(answer(400))).rejects.toThrow('get Secret push');
});

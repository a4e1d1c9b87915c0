import { expect, test } from 'vitest';
import { ApiError, ApiUnreachable } from '../../cluster/api-client.ts';
import { NotKnownNow } from './clusters.ts';
import { unlessAway } from './not-known.ts';

const failing = async (error: unknown): Promise<unknown> => {
  const act = () => Promise.reject(error);
  return unlessAway('the cluster a/b', 'install the component c', act).catch((thrown: unknown) => thrown);
};
const answer = (status: number) => new ApiError(status, 'list nodes', { reason: 'Test' });

test.each([401, 403])('a request that is refused with %i names what permits it', async (status) => {
  const error = await failing(answer(status));
  expect(error).toBeInstanceOf(NotKnownNow);
  expect(error).toMatchObject({
    message: expect.stringMatching(/^the cluster a\/b refuses a request: .*; install the component c$/),
  });
});

test.each([404, 409, 429, 500])('of an answer %i a permission is not what is missing', async (status) => {
  const error = await failing(answer(status));
  expect(error).toBeInstanceOf(NotKnownNow);
  expect(String(error)).toMatch(/the cluster a\/b refuses a request: /);
  expect(String(error)).not.toContain('install');
});

test.each([
  ['is unreachable', new ApiUnreachable('list nodes', new Error('connect ECONNREFUSED 192.0.2.1:6443'))],
  ['is out of time', new DOMException('late', 'TimeoutError')],
])('of a cluster that %s no address is named', async (_what, cause) => {
  const error = await failing(cause);
  expect(error).toBeInstanceOf(NotKnownNow);
  expect(error).toMatchObject({ message: 'the cluster a/b does not answer', cause });
});

test.each([new Error('of the program'), new DOMException('over', 'AbortError')])(
  'every other error is thrown as it is: %s',
  async (error) => {
    expect(await failing(error)).toBe(error);
  },
);

/** A pod's log comes from its node's kubelet over TLS, through the server: read, followed, refused. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, START_MS, startApi, uniqueName } from '../conformance/api.ts';
import type { LogOptions } from './log-options.ts';
import type { LogTarget } from './serve-log.ts';

/** What the kubelet of this test was asked for, and how a log that it follows goes on. */
const asked: { target: LogTarget; options: LogOptions }[] = [];
let api: Api;

beforeAll(async () => {
  api = await startApi({
    assets: undefined,
    async *readContainerLog(target, options, end) {
      asked.push({ target, options });
      yield `of ${target.container}\n`;
      if (!options.follow) return;
      const ended = Promise.withResolvers<void>();
      end.addEventListener('abort', () => ended.resolve());
      await ended.promise;
      yield 'last\n';
    },
  });
}, START_MS);
afterAll(() => api.stop());

const pods = '/api/v1/namespaces/default/pods';

/** @returns the path of a pod that runs. */
async function startPod(...containers: string[]): Promise<string> {
  const name = uniqueName('pod');
  await api.call('POST', pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName: 'n',
      terminationGracePeriodSeconds: 0,
      containers: containers.map((each) => ({ name: each, image: 'a' })),
    },
  });
  const path = `${pods}/${name}`;
  await setStatus(path, { phase: 'Running' });
  return path;
}

async function setStatus(path: string, status: object): Promise<void> {
  const contentType = 'application/merge-patch+json';
  await api.call('PATCH', `${path}/status`, { status }, { contentType });
}

test('a log is what the kubelet of the node reads', async () => {
  const path = await startPod('a', 'b');
  const { body } = await api.call(
    'GET',
    `${path}/log?container=b&tailLines=5&timestamps=true&sinceSeconds=60`,
  );
  expect(body).toBe('of b\n');
  const { target, options } = asked.at(-1) ?? {};
  expect(target).toMatchObject({ namespace: 'default', node: 'n', container: 'b' });
  expect(options).toMatchObject({ tailLines: 5, timestamps: true, follow: false, since: expect.any(Date) });
});

test.each<[string, (path: string) => Promise<unknown>]>([
  ['its pod is deleted', (path) => api.call('DELETE', path)],
  ['its pod is done', (path) => setStatus(path, { phase: 'Succeeded' })],
  [
    'its container is started again',
    (path) => setStatus(path, { containerStatuses: [{ name: 'a', restartCount: 1 }] }),
  ],
])('a log that is followed ends when %s', async (_, end) => {
  const path = await startPod('a');
  const before = asked.length;
  const following = api.call('GET', `${path}/log?follow=true`);
  await expect.poll(() => asked.length).toBe(before + 1);
  await end(path);
  expect((await following).body).toBe('of a\nlast\n');
});

test('a container that has not started has none yet, and none from before', async () => {
  const path = await startPod('a');
  const previous = await api.call('GET', `${path}/log?previous=true`);
  expect([previous.status, previous.body.message]).toEqual([
    400,
    `previous terminated container "a" in pod "${path.split('/').at(-1)}" not found`,
  ]);
  await setStatus(path, { phase: 'Pending' });
  const { status, body } = await api.call('GET', `${path}/log`);
  expect(status).toBe(400);
  expect(body.message).toContain('is waiting to start: ContainerCreating');
});

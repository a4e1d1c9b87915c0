/** The server as a process on loopback: it starts, answers, keeps connections, and ends. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, get } from 'node:https';
import { expect, test } from 'vitest';
import { startApiServer } from './start.ts';

test('starts on loopback, answers, and ends', async () => {
  const server = await startApiServer();
  try {
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(server.kubeconfig()).toContain(server.url);
    expect(() => server.createToken({ namespace: 'default', name: 'nobody' })).toThrow(
      'serviceaccounts/default/nobody',
    );
  } finally {
    await server.stop();
  }
  await server.stop();
});

test('keeps an idle connection for as long as kube-apiserver does', async () => {
  const server = await startApiServer();
  const agent = new Agent({ keepAlive: true, ca: server.caPem });
  try {
    const request = get(`${server.url}/healthz`, { agent });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.headers['keep-alive']).toBe('timeout=90');
  } finally {
    agent.destroy();
    await server.stop();
  }
});

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

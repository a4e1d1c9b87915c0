import { expect, test } from 'vitest';
import { startTelemetry } from './telemetry.ts';

test('a process serves its liveness, its readiness and its metrics', async () => {
  let why: string | undefined = 'caches are not filled';
  const telemetry = await startTelemetry({
    port: 0,
    host: '127.0.0.1',
    metrics: async () => ({ text: 'a_total 1\n', type: 'text/plain; version=0.0.4' }),
    notReady: () => why,
  });
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${telemetry.port}${path}`);
    return [response.status, await response.text()];
  };
  try {
    expect(await ask('/healthz')).toEqual([200, 'ok\n']);
    expect(await ask('/readyz')).toEqual([503, 'caches are not filled\n']);
    why = undefined;
    expect(await ask('/readyz?verbose')).toEqual([200, 'ok\n']);
    expect(await ask('/metrics')).toEqual([200, 'a_total 1\n']);
    expect((await ask('/else'))[0]).toBe(404);
  } finally {
    await telemetry.close();
  }
});

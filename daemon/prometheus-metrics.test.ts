import { afterEach, expect, it } from 'vitest';
import { type DaemonTelemetry, startDaemonTelemetry } from './prometheus-metrics.ts';
import { stateOf } from './steps/phase.ts';

let telemetry: DaemonTelemetry;
afterEach(() => telemetry.close());
const get = async (path: string) => {
  const answer = await fetch(`http://127.0.0.1:${telemetry.port}${path}`);
  return { status: answer.status, text: await answer.text() };
};
const lines = async () => (await get('/metrics')).text.split('\n');

it('tells where the node is, and that alone', async () => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  const { metrics } = telemetry;
  metrics.is(...stateOf({ kind: 'degraded', reason: 'UpdateFailed', why: 'many words' }));
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'shale_daemon_state{state="degraded"} 1',
      'shale_daemon_state{state="updated"} 0',
      'shale_daemon_problem{reason="UpdateFailed"} 1',
      'shale_daemon_problem{reason="ConfigDrift"} 0',
    ]),
  );
  metrics.is(...stateOf({ kind: 'preparing', problem: 'no room' }));
  metrics.is(...stateOf({ kind: 'updated' }));
  metrics.backend('bootc');
  metrics.backend('ostree');
  const text = await lines();
  expect(text.filter((line) => /^shale_daemon_(state|problem|backend)\{.* 1$/.test(line))).toEqual([
    'shale_daemon_state{state="updated"} 1',
    'shale_daemon_backend{backend="ostree"} 1',
  ]);
});

it('counts requests, by status or that there was no answer', async () => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  const request = { verb: 'update', resource: 'machineconfignodes/status' } as const;
  for (const status of [200, 200, 409, 0]) telemetry.metrics.requested({ ...request, status });
  const of = (code: string) =>
    `shale_daemon_api_requests_total{verb="update",resource="machineconfignodes/status",code="${code}"}`;
  expect(await lines()).toEqual(
    expect.arrayContaining([`${of('200')} 2`, `${of('409')} 1`, `${of('none')} 1`]),
  );
});

it('tells what the process uses', async () => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  const value = async (name: string) =>
    Number((await lines()).find((line) => line.startsWith(`${name} `))?.split(' ')[1]);
  expect(await value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
  const cpu = await value('process_cpu_seconds_total');
  expect(cpu).toBeGreaterThan(0);
  expect(await value('process_cpu_seconds_total')).toBeGreaterThanOrEqual(cpu);
  expect(await value('process_start_time_seconds')).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
});

it('is ready once it knows what its node should be', async () => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  expect(await get('/readyz')).toEqual({ status: 503, text: 'Reading its MachineConfigNode\n' });
  expect((await get('/healthz')).status).toBe(200);
  telemetry.synced();
  expect((await get('/readyz')).status).toBe(200);
});

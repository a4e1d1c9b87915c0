import { afterEach, expect, it } from 'vitest';
import { type DaemonTelemetry, startDaemonTelemetry } from './prometheus-metrics.ts';
import type { NodeMetrics } from './steps/node-metrics.ts';
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

it('tells what was staged, and how long everything took', async () => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  const { metrics } = telemetry;
  metrics.staging(3, 10);
  metrics.step('prepare', 4, 'failed');
  metrics.step('recordHostRollback', 2, 'done');
  metrics.applied('content', 1, 'done');
  metrics.rebooted(100);
  metrics.updated('softReboot', 'RolledBack', 200);
  metrics.driftFound();
  metrics.driftFound();
  metrics.certificates('kubeletCA', 'failed');
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'shale_daemon_staged_bytes 3',
      'shale_daemon_staging_size_bytes 10',
      'shale_daemon_step_seconds_sum{step="prepare",result="failed"} 4',
      // As it was called when dashboards were made.
      'shale_daemon_step_seconds_sum{step="hostWentBack",result="done"} 2',
      'shale_daemon_step_seconds_bucket{le="1",step="prepare",result="failed"} 0',
      'shale_daemon_step_seconds_bucket{le="5",step="prepare",result="failed"} 1',
      'shale_daemon_live_apply_seconds_sum{part="content",result="done"} 1',
      'shale_daemon_live_apply_seconds_bucket{le="0.5",part="content",result="done"} 0',
      'shale_daemon_live_apply_seconds_bucket{le="2",part="content",result="done"} 1',
      'shale_daemon_reboot_seconds_sum 100',
      'shale_daemon_reboot_seconds_bucket{le="60"} 0',
      'shale_daemon_reboot_seconds_bucket{le="120"} 1',
      'shale_daemon_update_seconds_sum{way="softReboot",result="RolledBack"} 200',
      'shale_daemon_update_seconds_bucket{le="120",way="softReboot",result="RolledBack"} 0',
      'shale_daemon_update_seconds_bucket{le="300",way="softReboot",result="RolledBack"} 1',
      'shale_daemon_drifts_total 2',
      'shale_daemon_certificates_total{name="kubeletCA",result="failed"} 1',
    ]),
  );
});

// A dashboard that adds up several versions needs the same ones in all.
it.each([
  ['step', [0.1, 1, 5, 30, 120, 600], (of: NodeMetrics) => of.step('idle', 1, 'done')],
  ['live_apply', [0.1, 0.5, 2, 10, 60, 300], (of: NodeMetrics) => of.applied('content', 1, 'done')],
  ['reboot', [15, 30, 60, 120, 300, 600, 1_800], (of: NodeMetrics) => of.rebooted(1)],
  ['update', [1, 5, 30, 120, 300, 900, 3_600], (of: NodeMetrics) => of.updated('live', 'Succeeded', 1)],
] as const)('the buckets of shale_daemon_%s_seconds are %j', async (name, buckets, observe) => {
  telemetry = await startDaemonTelemetry(0, '127.0.0.1');
  observe(telemetry.metrics);
  const bounds = (await lines()).flatMap(
    (line) => new RegExp(`^shale_daemon_${name}_seconds_bucket\\{le="([^"]*)"`).exec(line)?.[1] ?? [],
  );
  expect(bounds).toEqual([...buckets.map(String), '+Inf']);
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

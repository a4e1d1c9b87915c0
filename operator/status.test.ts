import { afterEach, expect, it } from 'vitest';
import { aState, REBOOT } from '../test/fixtures/objects.ts';
import { type OperatorTelemetry, startOperatorTelemetry } from './status.ts';

let telemetry: OperatorTelemetry;
afterEach(() => telemetry.close());
const get = async (path: string) => {
  const answer = await fetch(`http://127.0.0.1:${telemetry.port}${path}`);
  return { status: answer.status, text: await answer.text() };
};

it('tells of nodes, drains and queues, and forgets a pool that is gone', async () => {
  telemetry = await startOperatorTelemetry(0, '127.0.0.1');
  const { metrics } = telemetry;
  const nodes = [
    aState('a'),
    aState('b', { progress: { kind: 'staged', actions: REBOOT } }),
    aState('c', { lease: { by: 'us' } }),
    aState('d', { progress: { kind: 'degraded', why: '', since: 0 } }),
    aState('e', { away: { kind: 'switched-off', why: '' } }),
    aState('f', { assigned: false }),
  ];
  metrics.setPool('worker', nodes, 0, 1);
  metrics.setPool('gone', [], 0, 0);
  metrics.removePool('gone');
  metrics.observeDrain(20);
  metrics.observePass('pools', { took: 2, outcome: 'failed' });
  telemetry.watch(() => new Map([['pools', 3]]));
  const { text } = await get('/metrics');
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      'shale_operator_nodes{pool="worker",phase="updated"} 1',
      'shale_operator_nodes{pool="worker",phase="waiting"} 2',
      'shale_operator_nodes{pool="worker",phase="working"} 1',
      'shale_operator_nodes{pool="worker",phase="degraded"} 1',
      'shale_operator_nodes{pool="worker",phase="away"} 1',
      'shale_operator_stuck_drains{pool="worker"} 1',
      'shale_operator_drain_seconds_bucket{le="30"} 1',
      'shale_operator_reconcile_seconds_count{controller="pools"} 1',
      'shale_operator_reconcile_failures_total{controller="pools"} 1',
      'shale_operator_queue_length{controller="pools"} 3',
    ]),
  );
  expect(text).not.toContain('gone');
});

it('is ready as a candidate and as a leader that knows the cluster', async () => {
  telemetry = await startOperatorTelemetry(0, '127.0.0.1');
  expect((await get('/readyz')).status).toBe(200);
  telemetry.is('reading');
  expect(await get('/readyz')).toEqual({ status: 503, text: 'reading the cluster\n' });
  expect((await get('/healthz')).status).toBe(200);
  telemetry.is('leading');
  expect((await get('/readyz')).status).toBe(200);
});

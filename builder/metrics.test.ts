import { expect, test } from 'vitest';
import { RegistryError } from '../image/registry/registry-error.ts';
import { BuildFailure } from './build-failure.ts';
import { BuildMetrics, serveBuildMetrics } from './metrics.ts';

test('what builds do is told in metrics', async () => {
  const telemetry = await serveBuildMetrics(0, '127.0.0.1');
  try {
    const { metrics } = telemetry;
    metrics.queueLength = () => 3;
    metrics.started(0.01);
    metrics.succeeded('Append', 0.3, { sent: 1_000, mounted: 300_000_000 });
    metrics.succeeded('Relabel', 0.2, { sent: 0, mounted: 0 });
    const refused = new RegistryError('no', { code: 'TOOMANYREQUESTS', status: 429 });
    metrics.failed(new BuildFailure('RegistryUnavailable', 'no', { cause: refused }), 1, 'retry');
    metrics.failed(new BuildFailure('ContainerfileFailed', 'no'), 1, 'giveUp');
    metrics.interrupted();
    const text = await (await fetch(`http://127.0.0.1:${telemetry.port}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.startsWith('shale_builder_'));
    const buckets = lines.flatMap((line) => /_bucket\{le="([^"]+)",phase="build"/.exec(line)?.[1] ?? []);
    expect(buckets.join(' ')).toBe('0.05 0.1 0.25 0.5 1 2.5 5 15 60 300 1800 +Inf');
    expect(lines).toEqual(
      expect.arrayContaining([
        'shale_builder_phase_seconds_sum{phase="queue"} 0.01',
        'shale_builder_phase_seconds_sum{phase="build"} 2.5',
        'shale_builder_builds_total{result="Succeeded",way="Append"} 1',
        'shale_builder_builds_total{result="Succeeded",way="Relabel"} 1',
        'shale_builder_builds_total{result="Failed",way=""} 1',
        'shale_builder_builds_total{result="Interrupted",way=""} 1',
        'shale_builder_phase_seconds_count{phase="queue"} 1',
        'shale_builder_phase_seconds_count{phase="build"} 4',
        'shale_builder_layer_bytes_total{how="sent"} 1000',
        'shale_builder_layer_bytes_total{how="mounted"} 300000000',
        'shale_builder_registry_errors_total{code="TOOMANYREQUESTS"} 1',
        'shale_builder_failed_attempts_total{reason="RegistryUnavailable"} 1',
        'shale_builder_failed_attempts_total{reason="ContainerfileFailed"} 1',
        'shale_builder_queue_length 3',
      ]),
    );
  } finally {
    await telemetry.close();
  }
});

test('a registry error without a code is counted by its status', async () => {
  const metrics = new BuildMetrics();
  const down = new RegistryError('no', { code: '', status: 503 });
  metrics.failed(new BuildFailure('RegistryUnavailable', 'no', { cause: down }), 1, 'retry');
  expect(await metrics.registry.metrics()).toContain('shale_builder_registry_errors_total{code="503"} 1');
  expect(await metrics.registry.metrics()).not.toContain('result="Failed"');
  expect(await metrics.registry.metrics()).toContain('shale_builder_queue_length 0');
});

import { expect, test } from 'vitest';
import { RegistryError } from '../image/registry/registry-error.ts';
import { BuildFailure } from './build-failure.ts';
import { serveBuildMetrics } from './metrics.ts';

test('what builds do is told in metrics', async () => {
  const telemetry = await serveBuildMetrics(0, '127.0.0.1');
  try {
    const { metrics } = telemetry;
    metrics.queueLength = () => 3;
    metrics.started(0.01);
    metrics.succeeded('Append', 0.3, { sent: 1_000, mounted: 300_000_000 });
    metrics.succeeded('Relabel', 0.2, { sent: 0, mounted: 0 });
    const refused = new RegistryError('no', { code: 'TOOMANYREQUESTS', status: 429 });
    metrics.failed(new BuildFailure('RegistryUnavailable', 'no', { cause: refused }), 1, false);
    metrics.failed(new BuildFailure('ContainerfileFailed', 'no'), 1, true);
    metrics.interrupted();
    const text = await (await fetch(`http://127.0.0.1:${telemetry.port}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.startsWith('shale_builder_'));
    expect(lines).toEqual(
      expect.arrayContaining([
        'shale_builder_builds_total{result="Succeeded",way="Append"} 1',
        'shale_builder_builds_total{result="Succeeded",way="Relabel"} 1',
        'shale_builder_builds_total{result="Failed",way=""} 1',
        'shale_builder_builds_total{result="Interrupted",way=""} 1',
        'shale_builder_phase_seconds_count{phase="queue"} 1',
        'shale_builder_phase_seconds_count{phase="build"} 4',
        'shale_builder_layer_bytes_total{how="sent"} 1000',
        'shale_builder_layer_bytes_total{how="mounted"} 300000000',
        'shale_builder_registry_errors_total{code="TOOMANYREQUESTS"} 1',
        'shale_builder_queue_length 3',
      ]),
    );
  } finally {
    await telemetry.close();
  }
});

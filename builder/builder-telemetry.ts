import { startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import type { BuildMetrics } from './build-metrics.ts';

export interface BuilderTelemetry extends Telemetry {
  /** @returns what to tell metrics by. @param queueLength is asked whenever somebody reads them. */
  watch(queueLength: () => number): BuildMetrics;
}

/** Serves the builder's metrics and health. The client library is loaded only for a builder that is watched. */
export async function startBuilderTelemetry(port: number, host?: string): Promise<BuilderTelemetry> {
  const [{ prometheusMetrics }, { metricsPage }] = await Promise.all([
    import('./metrics.ts'),
    import('../cluster/process-metrics.ts'),
  ]);
  let length = () => 0;
  const { metrics, registry } = prometheusMetrics(() => length());
  const telemetry = await startTelemetry({
    port,
    ...(host === undefined ? {} : { host }),
    metrics: metricsPage(registry),
    notReady: () => undefined,
  });
  return {
    ...telemetry,
    watch(queueLength) {
      length = queueLength;
      return metrics;
    },
  };
}

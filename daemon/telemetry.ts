import { present } from '../api/present.ts';
import { startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import type { NodeMetrics } from './steps/node-metrics.ts';

export interface DaemonTelemetry extends Telemetry {
  readonly metrics: NodeMetrics;
  /** The daemon knows what its node should be, from here on. */
  synced(): void;
}

/** Serves a daemon's metrics and health. The client library is loaded only for a daemon that is watched. */
export async function startDaemonTelemetry(port: number, host?: string): Promise<DaemonTelemetry> {
  const [{ PrometheusMetrics }, { metricsPage }] = await Promise.all([
    import('./prometheus-metrics.ts'),
    import('../cluster/telemetry.ts'),
  ]);
  let isSynced = false;
  const metrics = new PrometheusMetrics();
  const telemetry = await startTelemetry({
    port,
    ...present({ host }),
    metrics: metricsPage(metrics.registry),
    notReady: () => (isSynced ? undefined : 'Reading its MachineConfigNode'),
  });
  return {
    ...telemetry,
    metrics,
    synced() {
      isSynced = true;
    },
  };
}

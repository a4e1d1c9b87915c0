import { startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import type { RolloutMetrics } from '../rollout/reports/metrics.ts';

/** A candidate is ready to lead; a leader is ready once its caches are synced. */
export type OperatorState = 'candidate' | 'reading' | 'leading';

/** The operator's metrics and health, as it serves them. */
export interface OperatorTelemetry extends Telemetry {
  readonly metrics: RolloutMetrics;
  /** @param queueLengths is called whenever the metrics are read. */
  watch(queueLengths: () => ReadonlyMap<string, number>): void;
  is(state: OperatorState): void;
}

/** Serves the operator's metrics and health. The client library is loaded only for an operator that has metrics. */
export async function startOperatorTelemetry(port: number, host?: string): Promise<OperatorTelemetry> {
  const [{ RolloutMetrics }, { metricsPage }] = await Promise.all([
    import('../rollout/reports/metrics.ts'),
    import('../cluster/telemetry.ts'),
  ]);
  let lengths: () => ReadonlyMap<string, number> = () => new Map();
  let state: OperatorState = 'candidate';
  const metrics = new RolloutMetrics(() => lengths());
  const telemetry = await startTelemetry({
    port,
    host,
    metrics: metricsPage(metrics.registry),
    notReady: () => (state === 'reading' ? 'reading the cluster' : undefined),
  });
  return {
    ...telemetry,
    metrics,
    watch(queueLengths) {
      lengths = queueLengths;
    },
    is(next) {
      state = next;
    },
  };
}

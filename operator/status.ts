import { startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import type { RolloutMetrics } from '../rollout/reports/metrics.ts';

/** How far an operator is: a candidate is ready to lead, a leader is ready once it knows the cluster. */
export type OperatorState = 'candidate' | 'reading' | 'leading';

export interface OperatorTelemetry extends Telemetry {
  readonly metrics: RolloutMetrics;
  /** @param queueLengths is asked whenever somebody reads the metrics. */
  watch(queueLengths: () => ReadonlyMap<string, number>): void;
  is(state: OperatorState): void;
}

/** Serves the operator's metrics and health. The client library is loaded only for an operator that is watched. */
export async function startOperatorTelemetry(port: number, host?: string): Promise<OperatorTelemetry> {
  const [{ prometheusMetrics }, { metricsPage }] = await Promise.all([
    import('../rollout/reports/prometheus-metrics.ts'),
    import('../cluster/process-metrics.ts'),
  ]);
  let lengths: () => ReadonlyMap<string, number> = () => new Map();
  let state: OperatorState = 'candidate';
  const { metrics, registry } = prometheusMetrics(() => lengths());
  const telemetry = await startTelemetry({
    port,
    ...(host === undefined ? {} : { host }),
    metrics: metricsPage(registry),
    notReady: () => (state === 'reading' ? 'reads the cluster' : undefined),
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

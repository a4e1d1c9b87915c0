import type { Registry } from 'prom-client';
import { prometheusMetrics as builderMetrics } from '../../builder/prometheus-metrics.ts';
import { prometheusMetrics as operatorMetrics } from '../../rollout/metrics/prometheus-metrics.ts';
import { code, page, table } from './markdown.ts';

/** What prom-client's own declaration leaves out. */
interface Declared {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
}

/** @returns the page of every metric, as the processes register them. */
export function metricsPage(): string {
  return page('Metrics', 'rollout/metrics/ and builder/', [
    'For Prometheus, at `/metrics` of the port that `--metrics-port` names; `manifests/components/monitoring` has a ServiceMonitor, alerts and a dashboard. A label’s values are few: pools, controllers, and words of Shale’s own.',
    '## Operator',
    metricsTable(operatorMetrics(() => new Map()).registry),
    '## Machine OS Builder',
    metricsTable(builderMetrics(() => 0).registry),
  ]);
}

function metricsTable(registry: Registry): string {
  const declared = registry.getMetricsAsArray() as unknown as readonly Declared[];
  const rows = declared.map(({ name, help, type, labelNames = [] }) => [
    code(name),
    type,
    labelNames.map(code).join(', '),
    help,
  ]);
  return table(['metric', 'type', 'labels', 'meaning'], rows);
}

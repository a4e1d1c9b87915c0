import { Registry } from 'prom-client';
import { BuildMetrics } from '../../builder/metrics.ts';
import { ExtensionMetrics } from '../../capi/metrics.ts';
import { registerProcessMetrics } from '../../cluster/telemetry.ts';
import { PrometheusMetrics as DaemonMetrics } from '../../daemon/prometheus-metrics.ts';
import { RolloutMetrics } from '../../rollout/reports/metrics.ts';
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
  const ofProcess = new Registry();
  registerProcessMetrics(ofProcess);
  return page('Metrics', 'rollout/reports/, builder/, daemon/, capi/ and cluster/', [
    'Each process serves its metrics for Prometheus at `/metrics` of `--metrics-port`. `manifests/components/monitoring` has a ServiceMonitor, alerts and a dashboard. Labels have few values: pools, controllers, API resources and constants.',
    '## Operator',
    metricsTable(new RolloutMetrics(() => new Map()).registry),
    '## Machine OS Builder',
    metricsTable(new BuildMetrics().registry),
    '## Daemon',
    'For one node; the ServiceMonitor adds its name as the label `node`.',
    metricsTable(new DaemonMetrics().registry),
    '## Update extension of Cluster API',
    metricsTable(new ExtensionMetrics().registry),
    '## Every process',
    metricsTable(ofProcess),
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

import { Registry } from 'prom-client';
import { BuildMetrics } from '../../builder/metrics.ts';
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
  return page('Metrics', 'rollout/reports/, builder/, daemon/ and cluster/', [
    'For Prometheus, at `/metrics` of the port that `--metrics-port` names; `manifests/components/monitoring` has a ServiceMonitor, alerts and a dashboard. A label’s values are few: pools, controllers, resources of the API, and words of Shale’s own.',
    '## Operator',
    metricsTable(new RolloutMetrics(() => new Map()).registry),
    '## Machine OS Builder',
    metricsTable(new BuildMetrics().registry),
    '## Daemon',
    'Of one node; the ServiceMonitor adds its name as the label `node`.',
    metricsTable(new DaemonMetrics().registry),
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

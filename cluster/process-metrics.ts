import { Counter, Gauge, type Registry } from 'prom-client';
import type { TelemetryOptions } from './telemetry.ts';

/** @returns what `/metrics` answers with: a registry's metrics, and what every process tells of itself. */
export function metricsPage(registry: Registry): TelemetryOptions['metrics'] {
  registerProcessMetrics(registry);
  return async () => ({ text: await registry.metrics(), type: registry.contentType });
}

/**
 * What every process tells of itself, by the names that Prometheus' client libraries have in common. Not prom-client's own
 * collection, which measures the event loop a hundred times a second, also of a process that does nothing.
 */
export function registerProcessMetrics(registry: Registry): void {
  const registers = [registry];
  let before = process.cpuUsage();
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time that the process has used, in seconds.',
    registers,
    collect() {
      const now = process.cpuUsage();
      this.inc((now.user - before.user + now.system - before.system) / 1e6);
      before = now;
    },
  }).inc((before.user + before.system) / 1e6);
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory of the process that is resident, in bytes.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'When the process was started, in seconds since the epoch.',
    registers,
  }).set(Math.round(Date.now() / 1000 - process.uptime()));
}

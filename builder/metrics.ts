import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { RegistryError } from '../image/registry/registry-error.ts';
import type { BuildMetrics } from './build-metrics.ts';

/** Appends take tenths of a second, engines minutes. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1_800];

/**
 * @param queueLength how many MachineOSConfigs wait to be looked at.
 * @returns metrics for Prometheus, and what to tell them by.
 */
export function prometheusMetrics(queueLength: () => number): {
  readonly metrics: BuildMetrics;
  readonly registry: Registry;
} {
  const registry = new Registry();
  const registers = [registry];
  const builds = new Counter({
    name: 'shale_builder_builds_total',
    help: 'Builds that are over, by result and by way (Append, Relabel, Engine).',
    labelNames: ['result', 'way'],
    registers,
  });
  const seconds = new Histogram({
    name: 'shale_builder_phase_seconds',
    help: 'Seconds of a phase of a build: queue (waiting for a place) and build, each attempt by itself.',
    labelNames: ['phase'],
    buckets: SECONDS,
    registers,
  });
  const bytes = new Counter({
    name: 'shale_builder_layer_bytes_total',
    help: 'Bytes of layers that were pushed (sent), or made available in the registry (mounted).',
    labelNames: ['how'],
    registers,
  });
  const registryErrors = new Counter({
    name: 'shale_builder_registry_errors_total',
    help: 'Attempts that a registry ended, by its error code, or by the HTTP status where it gave none.',
    labelNames: ['code'],
    registers,
  });
  new Gauge({
    name: 'shale_builder_queue_length',
    help: 'MachineOSConfigs that wait to be looked at.',
    registers,
    collect() {
      this.set(queueLength());
    },
  });
  return {
    registry,
    metrics: {
      started: (waited) => seconds.observe({ phase: 'queue' }, waited),
      succeeded(way, took, moved) {
        builds.inc({ result: 'Succeeded', way });
        seconds.observe({ phase: 'build' }, took);
        bytes.inc({ how: 'sent' }, moved.sent);
        bytes.inc({ how: 'mounted' }, moved.mounted);
      },
      failed(failure, took, final) {
        seconds.observe({ phase: 'build' }, took);
        if (failure.cause instanceof RegistryError) {
          const { code, status } = failure.cause;
          registryErrors.inc({ code: code === '' ? String(status) : code });
        }
        if (final) builds.inc({ result: 'Failed', way: '' });
      },
      interrupted: () => builds.inc({ result: 'Interrupted', way: '' }),
    },
  };
}

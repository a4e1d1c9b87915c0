import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { BuildWay } from '../api/machine-os-build.ts';
import { metricsPage, startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import { RegistryError } from '../image/registry/registry-error.ts';
import type { BuildFailure } from './build-failure.ts';
import type { RetryDecision } from './decide-retry.ts';
import type { MovedBytes } from './status.ts';

/** Appends take tenths of a second, engines minutes. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1_800];

/**
 * The builder's metrics. Only a builder whose metrics are served loads this file, and with it the client library; every
 * other one imports its type alone.
 */
export class BuildMetrics {
  readonly registry = new Registry();
  /** @returns how many MachineOSConfigs wait for reconciliation; read at each scrape. */
  queueLength: () => number = () => 0;

  readonly #builds = new Counter({
    name: 'shale_builder_builds_total',
    help: 'Finished builds, by result and by build method (Append, Relabel, Engine, PreBuilt).',
    labelNames: ['result', 'way'],
    registers: [this.registry],
  });
  readonly #seconds = new Histogram({
    name: 'shale_builder_phase_seconds',
    help: 'Duration of the phases of a build in seconds: queue (waiting for a slot) and build (one attempt).',
    labelNames: ['phase'],
    buckets: SECONDS,
    registers: [this.registry],
  });
  readonly #bytes = new Counter({
    name: 'shale_builder_layer_bytes_total',
    help: 'Bytes of layers pushed to the registry (sent) or mounted from another repository of it (mounted).',
    labelNames: ['how'],
    registers: [this.registry],
  });
  readonly #failedAttempts = new Counter({
    name: 'shale_builder_failed_attempts_total',
    help: 'Build attempts that failed, by the reason of the failure, also those that are retried.',
    labelNames: ['reason'],
    registers: [this.registry],
  });
  readonly #registryErrors = new Counter({
    name: 'shale_builder_registry_errors_total',
    help: 'Build attempts that failed with a registry error, by error code, or by HTTP status if the registry sent no code.',
    labelNames: ['code'],
    registers: [this.registry],
  });

  constructor() {
    const length = () => this.queueLength();
    new Gauge({
      name: 'shale_builder_queue_length',
      help: 'MachineOSConfigs waiting for reconciliation.',
      registers: [this.registry],
      collect() {
        this.set(length());
      },
    });
  }

  /** @param waited seconds that the build waited for a slot. */
  started(waited: number): void {
    this.#seconds.observe({ phase: 'queue' }, waited);
  }

  succeeded(way: BuildWay, seconds: number, moved: MovedBytes): void {
    this.#builds.inc({ result: 'Succeeded', way });
    this.#seconds.observe({ phase: 'build' }, seconds);
    this.#bytes.inc({ how: 'sent' }, moved.sent);
    this.#bytes.inc({ how: 'mounted' }, moved.mounted);
  }

  /** @param next what follows. */
  failed({ cause, reason }: BuildFailure, seconds: number, next: RetryDecision['kind']): void {
    this.#seconds.observe({ phase: 'build' }, seconds);
    this.#failedAttempts.inc({ reason });
    if (cause instanceof RegistryError) {
      this.#registryErrors.inc({ code: cause.code === '' ? String(cause.status) : cause.code });
    }
    if (next === 'giveUp') this.#builds.inc({ result: 'Failed', way: '' });
  }

  interrupted(): void {
    this.#builds.inc({ result: 'Interrupted', way: '' });
  }
}

/** Serves the builder's metrics and health endpoints. */
export async function serveBuildMetrics(
  port: number,
  host?: string,
): Promise<Telemetry & { readonly metrics: BuildMetrics }> {
  const metrics = new BuildMetrics();
  const telemetry = await startTelemetry({
    port,
    host,
    metrics: metricsPage(metrics.registry),
    notReady: () => undefined,
  });
  return { ...telemetry, metrics };
}

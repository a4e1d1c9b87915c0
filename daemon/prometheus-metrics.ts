import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { UpdateRecord } from '../api/machine-config-node.ts';
import type { CertificateName } from '../api/node-certificates.ts';
import type { RequestObservation } from '../cluster/api-calls.ts';
import { metricsPage, startTelemetry, type Telemetry } from '../cluster/telemetry.ts';
import type { BackendName } from './os/os-tool.ts';
import type { UpdateWay } from './reboot/reboot-words.ts';
import type { NodeMetrics, StepResult, TimedPart, TimedStep } from './steps/node-metrics.ts';
import { type DaemonState, NODE_STATES, type PhaseProblem, PROBLEMS } from './steps/phase.ts';

/** A look takes milliseconds, an image's pull minutes, a step that waits for a reboot ten minutes at most. */
const STEP_SECONDS = [0.1, 1, 5, 30, 120, 600];
/** A reload takes tenths of a second; an action has five minutes unless it is given more. */
const PART_SECONDS = [0.1, 0.5, 2, 10, 60, 300];
/** From the request to the daemon's first look in the new boot. */
const REBOOT_SECONDS = [15, 30, 60, 120, 300, 600, 1_800];
/** A live change takes seconds, a reboot with its health checks minutes. */
const UPDATE_SECONDS = [1, 5, 30, 120, 300, 900, 3_600];

/** Values of the label `step` that dashboards know from before the steps had their present names. */
const OLDER_NAMES: Readonly<Partial<Record<TimedStep, string>>> = {
  recordHostRollback: 'hostWentBack',
  finishRollback: 'rolledBack',
};

/**
 * A daemon's metrics for Prometheus. In a module of its own, because only a daemon that is scraped loads the client
 * library.
 */
export class PrometheusMetrics implements NodeMetrics {
  readonly registry = new Registry();
  readonly #state = new Gauge({
    name: 'shale_daemon_state',
    help: `1 for the state that the node is in: ${NODE_STATES.join(', ')}.`,
    labelNames: ['state'],
    registers: [this.registry],
  });
  readonly #problem = new Gauge({
    name: 'shale_daemon_problem',
    help: `1 for the problem that prevents the node from reaching its target: ${PROBLEMS.join(', ')}.`,
    labelNames: ['reason'],
    registers: [this.registry],
  });
  readonly #stagedBytes = new Gauge({
    name: 'shale_daemon_staged_bytes',
    help: 'Bytes of the last target that were staged, out of those that the disk lacked.',
    registers: [this.registry],
  });
  readonly #stagingBytes = new Gauge({
    name: 'shale_daemon_staging_size_bytes',
    help: 'Bytes of the last target that the disk lacked; 0 until that is known.',
    registers: [this.registry],
  });
  readonly #steps = new Histogram({
    name: 'shale_daemon_step_seconds',
    help: 'Seconds that a step took, by step and result (done, failed).',
    labelNames: ['step', 'result'],
    buckets: STEP_SECONDS,
    registers: [this.registry],
  });
  readonly #parts = new Histogram({
    name: 'shale_daemon_live_apply_seconds',
    help: 'Seconds of a part of an update to the running system: content, or an action (DaemonReload, Reload, Restart).',
    labelNames: ['part', 'result'],
    buckets: PART_SECONDS,
    registers: [this.registry],
  });
  readonly #reboots = new Histogram({
    name: 'shale_daemon_reboot_seconds',
    help: "Seconds from the request for an update's reboot until the daemon runs again.",
    buckets: REBOOT_SECONDS,
    registers: [this.registry],
  });
  readonly #updates = new Histogram({
    name: 'shale_daemon_update_seconds',
    help: 'Seconds of an update from its grant to its end, by way (live, softReboot, reboot) and result (Succeeded, RolledBack, Failed).',
    labelNames: ['way', 'result'],
    buckets: UPDATE_SECONDS,
    registers: [this.registry],
  });
  readonly #drifts = new Counter({
    name: 'shale_daemon_drifts_total',
    help: 'Times that config drift was detected, or that it changed.',
    registers: [this.registry],
  });
  readonly #writtenCertificates = new Counter({
    name: 'shale_daemon_certificates_total',
    help: 'Certificates that were written (done) or could not be written (failed), by name (registryCAs, kubeletCA, pullSecret).',
    labelNames: ['name', 'result'],
    registers: [this.registry],
  });
  readonly #osBackend = new Gauge({
    name: 'shale_daemon_backend',
    help: "1 for the tool that manages the host's operating system: bootc, rpm-ostree, ostree.",
    labelNames: ['backend'],
    registers: [this.registry],
  });
  readonly #requests = new Counter({
    name: 'shale_daemon_api_requests_total',
    help: 'Requests to the API server by verb, resource and HTTP status; none if there was no answer.',
    labelNames: ['verb', 'resource', 'code'],
    registers: [this.registry],
  });

  is(now: DaemonState, why?: PhaseProblem): void {
    for (const state of NODE_STATES) this.#state.set({ state }, state === now ? 1 : 0);
    for (const reason of PROBLEMS) this.#problem.set({ reason }, reason === why ? 1 : 0);
  }

  staging(bytesDone: number, bytesTotal: number): void {
    this.#stagedBytes.set(bytesDone);
    this.#stagingBytes.set(bytesTotal);
  }

  step(step: TimedStep, seconds: number, result: StepResult): void {
    this.#steps.observe({ step: OLDER_NAMES[step] ?? step, result }, seconds);
  }

  applied(part: TimedPart, seconds: number, result: StepResult): void {
    this.#parts.observe({ part, result }, seconds);
  }

  rebooted(seconds: number): void {
    this.#reboots.observe(seconds);
  }

  updated(way: UpdateWay, result: UpdateRecord['result'], seconds: number): void {
    this.#updates.observe({ way, result }, seconds);
  }

  driftFound(): void {
    this.#drifts.inc();
  }

  certificates(name: CertificateName, result: StepResult): void {
    this.#writtenCertificates.inc({ name, result });
  }

  backend(backend: BackendName): void {
    this.#osBackend.reset();
    this.#osBackend.set({ backend }, 1);
  }

  requested({ verb, resource, status }: RequestObservation): void {
    this.#requests.inc({ verb, resource, code: status === 0 ? 'none' : String(status) });
  }
}

/** A daemon's metrics and health, as it serves them. */
export interface DaemonTelemetry extends Telemetry {
  readonly metrics: NodeMetrics;
  /** The daemon knows what its node should be, from here on. */
  synced(): void;
}

/**
 * Serves a daemon's metrics and health. @param port 0: chosen by the kernel. @param host address to listen on; all
 * unless given.
 */
export async function startDaemonTelemetry(port: number, host?: string): Promise<DaemonTelemetry> {
  let isSynced = false;
  const metrics = new PrometheusMetrics();
  const telemetry = await startTelemetry({
    port,
    host,
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

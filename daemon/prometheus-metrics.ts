import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { NodeMetrics } from './steps/node-metrics.ts';
import { NODE_STATES, PROBLEMS } from './steps/phase.ts';

/** A look takes milliseconds, an image's pull minutes, a step that waits for a reboot ten minutes at most. */
const STEP_SECONDS = [0.1, 1, 5, 30, 120, 600];
/** A reload takes tenths of a second; an action has five minutes unless it is given more. */
const PART_SECONDS = [0.1, 0.5, 2, 10, 60, 300];
/** From the request to the daemon's first look in the new boot. */
const REBOOT_SECONDS = [15, 30, 60, 120, 300, 600, 1_800];
/** A live change takes seconds, a reboot with its health checks minutes. */
const UPDATE_SECONDS = [1, 5, 30, 120, 300, 900, 3_600];

/** @returns metrics for Prometheus, and what to tell them by. */
export function prometheusMetrics(): { readonly metrics: NodeMetrics; readonly registry: Registry } {
  const registry = new Registry();
  const registers = [registry];
  const state = new Gauge({
    name: 'shale_daemon_state',
    help: `1 for the state that the node is in: ${NODE_STATES.join(', ')}.`,
    labelNames: ['state'],
    registers,
  });
  const problem = new Gauge({
    name: 'shale_daemon_problem',
    help: `1 for the problem that prevents the node from reaching its target: ${PROBLEMS.join(', ')}.`,
    labelNames: ['reason'],
    registers,
  });
  const stagedBytes = new Gauge({
    name: 'shale_daemon_staged_bytes',
    help: 'Bytes of the last target that were staged, out of those that the disk lacked.',
    registers,
  });
  const stagingBytes = new Gauge({
    name: 'shale_daemon_staging_size_bytes',
    help: 'Bytes of the last target that the disk lacked; 0 until that is known.',
    registers,
  });
  const steps = new Histogram({
    name: 'shale_daemon_step_seconds',
    help: 'Seconds that a step took, by step and result (done, failed).',
    labelNames: ['step', 'result'],
    buckets: STEP_SECONDS,
    registers,
  });
  const parts = new Histogram({
    name: 'shale_daemon_live_apply_seconds',
    help: 'Seconds of a part of an update to the running system: content, or an action (DaemonReload, Reload, Restart).',
    labelNames: ['part', 'result'],
    buckets: PART_SECONDS,
    registers,
  });
  const reboots = new Histogram({
    name: 'shale_daemon_reboot_seconds',
    help: "Seconds from the request for an update's reboot until the daemon runs again.",
    buckets: REBOOT_SECONDS,
    registers,
  });
  const updates = new Histogram({
    name: 'shale_daemon_update_seconds',
    help: 'Seconds of an update from its grant to its end, by way (live, softReboot, reboot) and result (Succeeded, RolledBack, Failed).',
    labelNames: ['way', 'result'],
    buckets: UPDATE_SECONDS,
    registers,
  });
  const drifts = new Counter({
    name: 'shale_daemon_drifts_total',
    help: 'Times that config drift was detected, or that it changed.',
    registers,
  });
  const certificates = new Counter({
    name: 'shale_daemon_certificates_total',
    help: 'Certificates that were written (done) or could not be written (failed), by name (registryCAs, kubeletCA, pullSecret).',
    labelNames: ['name', 'result'],
    registers,
  });
  const backend = new Gauge({
    name: 'shale_daemon_backend',
    help: "1 for the tool that manages the host's operating system: bootc, rpm-ostree, ostree.",
    labelNames: ['backend'],
    registers,
  });
  const requests = new Counter({
    name: 'shale_daemon_api_requests_total',
    help: 'Requests to the API server by verb, resource and HTTP status; none if there was no answer.',
    labelNames: ['verb', 'resource', 'code'],
    registers,
  });
  return {
    registry,
    metrics: {
      is(now, why) {
        for (const each of NODE_STATES) state.set({ state: each }, each === now ? 1 : 0);
        for (const reason of PROBLEMS) problem.set({ reason }, reason === why ? 1 : 0);
      },
      staging(bytesDone, bytesTotal) {
        stagedBytes.set(bytesDone);
        stagingBytes.set(bytesTotal);
      },
      step: (step, seconds, result) => steps.observe({ step, result }, seconds),
      applied: (part, seconds, result) => parts.observe({ part, result }, seconds),
      rebooted: (seconds) => reboots.observe(seconds),
      updated: (way, result, seconds) => updates.observe({ way, result }, seconds),
      driftFound: () => drifts.inc(),
      certificates: (name, result) => certificates.inc({ name, result }),
      backend(name) {
        backend.reset();
        backend.set({ backend: name }, 1);
      },
      requested: ({ verb, resource, status }) =>
        requests.inc({ verb, resource, code: status === 0 ? 'none' : String(status) }),
    },
  };
}

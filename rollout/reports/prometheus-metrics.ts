import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { NODE_PHASES, type RolloutMetrics } from './metrics.ts';

/** A look at a pool takes milliseconds; one that asks for evictions takes seconds. */
const RECONCILE_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 30];
/** Pods have 30 s to end unless they ask for more; a budget may hold a drain up for hours. */
const DRAIN_SECONDS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400];

/**
 * @param queueLengths how many keys wait, by controller.
 * @returns metrics for Prometheus, and what to tell them by.
 */
export function prometheusMetrics(queueLengths: () => ReadonlyMap<string, number>): {
  readonly metrics: RolloutMetrics;
  readonly registry: Registry;
} {
  const registry = new Registry();
  const registers = [registry];
  const nodes = new Gauge({
    name: 'shale_operator_nodes',
    help: `Nodes of a pool by where they are: ${NODE_PHASES.join(', ')}.`,
    labelNames: ['pool', 'phase'],
    registers,
  });
  const stuck = new Gauge({
    name: 'shale_operator_stuck_drains',
    help: 'Drains of a pool that take longer than drains should.',
    labelNames: ['pool'],
    registers,
  });
  const drains = new Histogram({
    name: 'shale_operator_drain_seconds',
    help: 'Seconds from taking a node until it was empty.',
    buckets: DRAIN_SECONDS,
    registers,
  });
  const seconds = new Histogram({
    name: 'shale_operator_reconcile_seconds',
    help: 'Seconds of one look of a controller at one key.',
    labelNames: ['controller'],
    buckets: RECONCILE_SECONDS,
    registers,
  });
  const failures = new Counter({
    name: 'shale_operator_reconcile_failures_total',
    help: 'Looks of a controller that failed, conflicts with other writers apart.',
    labelNames: ['controller'],
    registers,
  });
  new Gauge({
    name: 'shale_operator_queue_length',
    help: 'Keys that wait for a controller.',
    labelNames: ['controller'],
    registers,
    collect() {
      for (const [controller, length] of queueLengths()) this.set({ controller }, length);
    },
  });
  return {
    registry,
    metrics: {
      pool(pool, phases, stuckDrains) {
        for (const phase of NODE_PHASES) nodes.set({ pool, phase }, phases.get(phase) ?? 0);
        stuck.set({ pool }, stuckDrains);
      },
      poolGone(pool) {
        for (const phase of NODE_PHASES) nodes.remove({ pool, phase });
        stuck.remove({ pool });
      },
      drained: (took) => drains.observe(took),
      pass(controller, { took, outcome }) {
        seconds.observe({ controller }, took / 1000);
        if (outcome === 'failed') failures.inc({ controller });
      },
    },
  };
}

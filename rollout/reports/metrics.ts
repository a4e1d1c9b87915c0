import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { nodeStateNames } from '../../api/node-state.ts';
import type { Pass } from '../../cluster/controller.ts';
import type { NotificationResult } from '../../cluster/notifications.ts';
import { START_WAITS } from '../gates/gates.ts';
import type { Hold } from '../gates/hold.ts';
import type { StartupDecision } from '../pools/new-nodes.ts';
import { overdueNodes } from '../pools/new-nodes.ts';
import { isAway, type NodeState, stateNameOf } from '../pools/node-state.ts';
import { isAtWork } from '../pools/node-step.ts';

/** Where a node is, in few words: they are values of a metric's label. */
const NODE_PHASES = ['updated', 'preparing', 'waiting', 'working', 'degraded', 'away'] as const;
type NodePhase = (typeof NODE_PHASES)[number];

/** A node that no daemon manages is in no pool. */
const MANAGED_STATES = nodeStateNames.filter((state) => state !== 'unmanaged');

/** One pass over a pool takes milliseconds; one that asks for evictions takes seconds. */
const RECONCILE_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 30];
/** Pods have 30 s to end unless they ask for more; a budget may block a drain for hours. */
const DRAIN_SECONDS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400];

/**
 * The operator's metrics for Prometheus. Import only its type where an operator without metrics runs as well: the
 * client library is loaded with this file.
 */
export class RolloutMetrics {
  readonly registry = new Registry();
  readonly #nodes = new Gauge({
    name: 'shale_operator_nodes',
    help: `Number of nodes of a pool by phase: ${NODE_PHASES.join(', ')}.`,
    labelNames: ['pool', 'phase'],
    registers: [this.registry],
  });
  readonly #states = new Gauge({
    name: 'shale_operator_node_states',
    help: `Number of nodes of a pool by state, as shale status names it: ${MANAGED_STATES.join(', ')}.`,
    labelNames: ['pool', 'state'],
    registers: [this.registry],
  });
  readonly #stuckDrains = new Gauge({
    name: 'shale_operator_stuck_drains',
    help: 'Number of nodes of a pool whose drain exceeds --drain-report-minutes.',
    labelNames: ['pool'],
    registers: [this.registry],
  });
  readonly #overdueHooks = new Gauge({
    name: 'shale_operator_overdue_hooks',
    help: 'Number of nodes of a pool whose hooks have not been cleared for longer than --hook-report-minutes.',
    labelNames: ['pool'],
    registers: [this.registry],
  });
  readonly #updatesHeld = new Gauge({
    name: 'shale_operator_updates_held',
    help: `1 if nodes of a pool could start their update and wait for something else. Reasons: ${[...START_WAITS.keys()].join(', ')}. Absent otherwise.`,
    labelNames: ['pool', 'reason'],
    registers: [this.registry],
  });
  readonly #newNodes = new Gauge({
    name: 'shale_operator_new_nodes',
    help: 'Number of nodes of a pool that have their startup taint; overdue="true": for longer than --new-node-report-minutes.',
    labelNames: ['pool', 'overdue'],
    registers: [this.registry],
  });
  readonly #bootImageLag = new Gauge({
    name: 'shale_operator_boot_image_lag',
    help: 'Number of images that a pool was assigned since the one that its new nodes boot; 0 if they need no update. Absent where new nodes boot the stock image.',
    labelNames: ['pool'],
    registers: [this.registry],
  });
  readonly #newNodeImageLag = new Gauge({
    name: 'shale_operator_new_node_image_lag',
    help: 'Largest number of images between what a node with the startup taint came with and what new nodes of its pool are to boot; 0 if they came with that. Absent while there is no such node, and where new nodes boot the stock image.',
    labelNames: ['pool'],
    registers: [this.registry],
  });
  readonly #signingDisabled = new Gauge({
    name: 'shale_operator_image_signing_disabled',
    help: '1 if nodes stage images without a signature (signing: disabled in the layering switch), 0 otherwise.',
    registers: [this.registry],
  });
  readonly #drainSeconds = new Histogram({
    name: 'shale_operator_drain_seconds',
    help: 'Seconds from acquiring the node lease until the node was drained.',
    buckets: DRAIN_SECONDS,
    registers: [this.registry],
  });
  readonly #reconcileSeconds = new Histogram({
    name: 'shale_operator_reconcile_seconds',
    help: 'Seconds per reconciliation of one key by a controller.',
    labelNames: ['controller'],
    buckets: RECONCILE_SECONDS,
    registers: [this.registry],
  });
  readonly #reconcileFailures = new Counter({
    name: 'shale_operator_reconcile_failures_total',
    help: 'Number of failed reconciliations of a controller, not counting write conflicts.',
    labelNames: ['controller'],
    registers: [this.registry],
  });
  readonly #notifications = new Counter({
    name: 'shale_operator_notifications_total',
    help: 'Number of events for --notify-url by result: sent, failed, dropped.',
    labelNames: ['result'],
    registers: [this.registry],
  });

  /** @param queueLengths how many keys are queued, by controller; called whenever the metrics are read. */
  constructor(queueLengths: () => ReadonlyMap<string, number>) {
    new Gauge({
      name: 'shale_operator_queue_length',
      help: 'Number of keys in the work queue of a controller.',
      labelNames: ['controller'],
      registers: [this.registry],
      collect() {
        for (const [controller, length] of queueLengths()) this.set({ controller }, length);
      },
    });
  }

  /**
   * @param nodes the nodes of the pool that were looked at.
   * @param settled how many further nodes it has, which are all updated.
   * @param stuckDrains drains that take longer than --drain-report-minutes.
   */
  setPool(pool: string, nodes: readonly NodeState[], settled: number, stuckDrains: number): void {
    const counts = new Map<NodePhase, number>([['updated', settled]]);
    for (const node of nodes) counts.set(phaseOf(node), (counts.get(phaseOf(node)) ?? 0) + 1);
    for (const phase of NODE_PHASES) this.#nodes.set({ pool, phase }, counts.get(phase) ?? 0);
    const inState = Map.groupBy(nodes, stateNameOf);
    for (const state of MANAGED_STATES) {
      const others = state === 'updated' ? settled : 0;
      this.#states.set({ pool, state }, others + (inState.get(state)?.length ?? 0));
    }
    this.#stuckDrains.set({ pool }, stuckDrains);
  }

  setOverdueHooks(pool: string, nodes: number): void {
    this.#overdueHooks.set({ pool }, nodes);
  }

  setUpdatesHeld(pool: string, waits: readonly Hold[]): void {
    for (const reason of START_WAITS.keys()) {
      if (waits.some((wait) => wait.reason === reason)) this.#updatesHeld.set({ pool, reason }, 1);
      else this.#updatesHeld.remove({ pool, reason });
    }
  }

  /** @param now ms since the epoch. */
  setNewNodes(pool: string, startup: StartupDecision, now: number): void {
    const overdue = overdueNodes(startup, now).length;
    this.#newNodes.set({ pool, overdue: 'true' }, overdue);
    this.#newNodes.set({ pool, overdue: 'false' }, startup.waiting.length - overdue);
  }

  /** @param lag undefined where new nodes boot the stock image. */
  setBootImageLag(pool: string, lag: number | undefined): void {
    if (lag === undefined) this.#bootImageLag.remove({ pool });
    else this.#bootImageLag.set({ pool }, lag);
  }

  /** @param lag undefined where no new node has come. */
  setNewNodeImageLag(pool: string, lag: number | undefined): void {
    if (lag === undefined) this.#newNodeImageLag.remove({ pool });
    else this.#newNodeImageLag.set({ pool }, lag);
  }

  removePool(pool: string): void {
    this.#bootImageLag.remove({ pool });
    this.#newNodeImageLag.remove({ pool });
    this.setUpdatesHeld(pool, []);
    for (const overdue of ['true', 'false']) this.#newNodes.remove({ pool, overdue });
    for (const phase of NODE_PHASES) this.#nodes.remove({ pool, phase });
    for (const state of MANAGED_STATES) this.#states.remove({ pool, state });
    this.#stuckDrains.remove({ pool });
    this.#overdueHooks.remove({ pool });
  }

  setSigningDisabled(disabled: boolean): void {
    this.#signingDisabled.set(disabled ? 1 : 0);
  }

  countNotification(result: NotificationResult): void {
    this.#notifications.inc({ result });
  }

  /** @param seconds since the node lease was acquired. */
  observeDrain(seconds: number): void {
    this.#drainSeconds.observe(seconds);
  }

  observePass(controller: string, { took, outcome }: Pass): void {
    this.#reconcileSeconds.observe({ controller }, took / 1000);
    if (outcome === 'failed') this.#reconcileFailures.inc({ controller });
  }
}

/** @returns the phase of a node; each node is in one. */
function phaseOf(node: NodeState): NodePhase {
  const { assigned, progress } = node.update;
  if (isAway(node)) return 'away';
  if (progress.kind === 'degraded') return 'degraded';
  if (isAtWork(node)) return 'working';
  if (!assigned) return 'waiting';
  return progress.kind === 'staged' ? 'waiting' : progress.kind;
}

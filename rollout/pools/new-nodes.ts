import type { Condition } from '../../api/object.ts';
import { byCodeUnits } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { awayOf } from './claims.ts';
import { startupOf } from './new-node.ts';
import type { NodeState } from './node-state.ts';
import { type Assignment, type NodeTarget, sameTarget } from './node-target.ts';
import type { PoolObservation } from './pool-observation.ts';
import type { PoolTarget } from './pool-target.ts';

/** A node that takes no pods yet because of its startup taint. */
export interface WaitingNode {
  readonly name: string;
  readonly why: string;
  /**
   * When it exceeds --new-node-report-minutes, in ms since the epoch; absent where the time of its registration is not
   * known.
   */
  readonly overdueAt?: number | undefined;
}

/** What is decided about the startup taints of a pool's nodes. */
export interface StartupDecision {
  /** Nodes whose startup taint is removed now. */
  readonly admit: readonly string[];
  /** The other nodes with one. */
  readonly waiting: readonly WaitingNode[];
}

export interface StartupInputs {
  readonly observation: Pick<PoolObservation, 'nodes' | 'target'>;
  /** Every node that was looked at and has a MachineConfigNode, by name. */
  readonly states: ReadonlyMap<string, NodeState>;
  readonly assign: ReadonlyMap<string, Assignment>;
  /** @returns why no update may start on a node; undefined where one may. */
  readonly closedFor: (node: NodeState) => string | undefined;
  /** @returns what the node waits for, where the rollout knows more than its state. */
  readonly messageOn: (node: NodeState) => string | undefined;
  /** ms that a node may take from its registration before it is reported. */
  readonly reportAfter: number;
}

/**
 * Decides which nodes lose their startup taint: those that run what the pool wants of them, and are Ready.
 *
 * While the image of a pool's target is being built, its nodes keep what they run; a node that runs the same takes pods
 * like them. Before the first image of a pool there is no such thing.
 */
export function decideStartup(inputs: StartupInputs): StartupDecision {
  const admit: string[] = [];
  const waiting: WaitingNode[] = [];
  for (const { node, machineDeleting } of inputs.observation.nodes) {
    if (node.spec?.taints?.some(isStartupTaint) !== true) continue;
    if (awayOf({ node, machineDeleting }) !== undefined) continue;
    const { name } = node.metadata;
    const state = inputs.states.get(name);
    const why = state === undefined ? whyUnassigned(inputs.observation.target) : whyNot(state, inputs);
    const registeredAt = startupOf(node)?.registeredAt;
    const overdueAt = registeredAt === undefined ? undefined : registeredAt + inputs.reportAfter;
    if (why === undefined) admit.push(name);
    else waiting.push({ name, why, overdueAt });
  }
  return { admit, waiting: waiting.toSorted((a, b) => byCodeUnits(a.name, b.name)) };
}

/** @returns the nodes whose time is over. @param now ms since the epoch. */
export function overdueNodes({ waiting }: StartupDecision, now: number): readonly WaitingNode[] {
  return waiting.filter(({ overdueAt }) => overdueAt !== undefined && overdueAt <= now);
}

function whyUnassigned(target: PoolTarget): string {
  return target.kind === 'none' ? target.why : 'it has no MachineConfigNode yet';
}

/** @returns undefined for a node that takes pods from now on. */
function whyNot(
  state: NodeState,
  { observation, assign, closedFor, messageOn }: StartupInputs,
): string | undefined {
  const { progress } = state.update;
  switch (progress.kind) {
    case 'updated':
      if (!state.update.assigned && !runsWhatOthersRun(observation.target, assign.get(state.name)?.target))
        return observation.target.kind === 'awaiting-image'
          ? `the pool has no image yet: ${observation.target.why}`
          : 'the pool has another target';
      if (!state.availability.ready) return 'it runs its target and is not Ready';
      return state.availability.bootAgrees ? undefined : 'the kubelet has not reported the new boot';
    case 'degraded':
      return `its update failed: ${progress.why}`;
    case 'staged':
      return (
        closedFor(state) ??
        state.claims.holders[0]?.message ??
        messageOn(state) ??
        'its update is about to start'
      );
    case 'preparing':
      return progress.why ?? messageOn(state) ?? 'its target is being staged';
  }
}

function runsWhatOthersRun(pool: PoolTarget, target: NodeTarget | undefined): boolean {
  if (pool.kind !== 'awaiting-image' || target === undefined) return false;
  return pool.initialTarget.image !== undefined && sameTarget(pool.initialTarget, target);
}

/** Nodes named in the condition's message. */
const NAMED_NODES = 10;

/** The condition NewNodesWaiting. @param now ms since the epoch. */
export function newNodesVerdict(
  decision: StartupDecision,
  now: number,
): Pick<Condition, 'status' | 'reason' | 'message'> | undefined {
  const { waiting } = decision;
  if (waiting.length === 0) return undefined;
  const overdue = overdueNodes(decision, now).length;
  const count = `${plural(waiting.length, 'new node')} ${waiting.length === 1 ? 'takes' : 'take'} no pods yet`;
  const named = waiting.slice(0, NAMED_NODES).map(({ name, why }) => `${name}: ${why}`);
  const more = waiting.length > NAMED_NODES ? [`and ${waiting.length - NAMED_NODES} more`] : [];
  return {
    status: 'True',
    reason: overdue > 0 ? 'Overdue' : 'BeingConfigured',
    message: [count, ...named, ...more].join('; '),
  };
}

import { present } from '../../api/present.ts';
import { type WindowState, windowState } from '../gates/maintenance-windows.ts';
import type { StartWait } from '../gates/start-wait.ts';
import { withinWaits } from '../gates/start-waits.ts';
import type { RolloutOptions } from '../options.ts';
import { armCandidates, chooseArmed, rebootWaits } from './armed-nodes.ts';
import {
  changesWith,
  chooseAssignments,
  type NewMachineConfigNode,
  newcomers,
  readWithAssignment,
} from './assign-targets.ts';
import { type Choice, chooseNodes, maxUnavailable, unavailableBecause } from './choose-nodes.ts';
import { awaitsRecovery, type Halt, haltOf } from './failures.ts';
import { isNew } from './new-node.ts';
import { decideStartup, type StartupDecision } from './new-nodes.ts';
import { closedByAdmin, nodeRemark } from './node-remark.ts';
import { awayOf, isNewNode, isReady, type NodeState } from './node-state.ts';
import { downSince, isAtWork, isSettled, type NodeStep, nodeStep } from './node-step.ts';
import type { Assignment, NodeTarget } from './node-target.ts';
import {
  noneSettled,
  type ObservedNode,
  type PoolObservation,
  type SettledCount,
  settlesAfter,
} from './pool-observation.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

export interface PoolDecision {
  /** The moment it was decided for, in ms since the epoch. */
  readonly at: number;
  /** MachineConfigNodes to create for nodes that have none. */
  readonly create: readonly NewMachineConfigNode[];
  /** Targets to assign, by node. */
  readonly assign: ReadonlyMap<string, Assignment>;
  /** Steps to take, by node; nodes without one are left alone. */
  readonly steps: ReadonlyMap<string, NodeStep>;
  /** Every node that was looked at and has a MachineConfigNode, with the targets above already given. */
  readonly states: readonly NodeState[];
  /** Nodes that were not looked at: all of them run the pool's target. */
  readonly settled: SettledCount;
  /** Those of `states` that need no attention until something about them changes. */
  readonly newlySettled: readonly NodeState[];
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
  /** Nodes that are unavailable for reasons that are not this rollout's; each takes one of maxUnavailable. */
  readonly unavailable: readonly { readonly name: string; readonly why: string }[];
  /** Nodes could start, but those of `unavailable` use up maxUnavailable. */
  readonly slotsTaken: boolean;
  /** Why the rollout has stopped, if failed nodes stopped it. */
  readonly halted: string | undefined;
  /** What is decided about the nodes with a startup taint. */
  readonly startup: StartupDecision;
  /** Set if nodes could start but for the pool's maintenance windows; `opensAt`: the next one, ms since the epoch. */
  readonly awaitsWindow: { readonly opensAt: number | undefined } | undefined;
  /** What else nodes wait for that could start: other pools, nodes that bake. */
  readonly startWaits: readonly StartWait[];
  /** What nodes wait for whose reboots are left to others, by node. */
  readonly rebootWaits: ReadonlyMap<string, string>;
  /** What the pool rolls back to because its rollout has stopped. */
  readonly rollbackTo: NodeTarget | undefined;
}

/**
 * Decides everything about one pool at one moment.
 *
 * @param now ms since the epoch.
 */
export function decidePool(observation: PoolObservation, options: RolloutOptions, now: number): PoolDecision {
  const targets = chooseAssignments(observation, options.stagingLimit);
  const states = observation.nodes.flatMap((observed) =>
    readWithAssignment(observation, observed, targets, now),
  );
  const settled = observation.settled ?? noneSettled;
  const { pool, settings } = observation;
  const halt = haltOf({ pool, states, settled: settled.nodes, settings }, now);
  const halted = halt.kind === 'none' ? undefined : halt.why;
  const closedFor = closedBecause(observation, halt);
  const patience = options.degradedPatienceSeconds * 1000;
  const context = { patience, unhealthyAfter: settings.unhealthyAfter, now };
  const notNow = (state: NodeState) => closedFor(state) ?? rebootWaits(settings, state);
  const steps = new Map<string, NodeStep>();
  for (const state of states) {
    const step = nodeStep(state, { ...context, closed: notNow(state) });
    if (step.kind !== 'none') steps.set(state.name, step);
  }
  const isOpenFor = (state: NodeState) => notNow(state) === undefined;
  const choice =
    states.some(isOpenFor) && isReadyToTake(observation.target)
      ? chooseNodes(states, { ...choiceLimits(observation, options, now), only: isOpenFor })
      : { begin: [], skipped: [], slotsTaken: false };
  const arms = { observation, states, inService: nodesInService(observation) };
  const candidates = isReadyToTake(observation.target)
    ? armCandidates(arms, {
        isOpenFor: (state) => closedFor(state) === undefined,
        ...present({ operatorNode: options.operatorNode }),
      })
    : [];
  // Alerts, pools and waves hold what is armed, too: from then on any reboot applies the target.
  const wanted = [...choice.begin, ...candidates.map(({ name }) => ({ name, level: 'Disrupt' as const }))];
  const started = withinWaits(wanted, { observation, states, settled: settled.nodes, now });
  const armed = chooseArmed(arms, candidates, started);
  const assign = new Map(
    [...targets].map(([name, each]) => [name, { ...each, armed: armed.permit.has(name) }]),
  );
  const isChosen = new Set(choice.begin.map(({ name }) => name));
  const mayBegin = started.begin.filter(({ name }) => isChosen.has(name));
  const changing = new Set(observation.nodes.flatMap((observed) => changesWith(observed, assign)));
  const { begin, awaitsWindow } = withinWindows(mayBegin, states, settings, now);
  for (const { name, level } of begin) steps.set(name, { kind: 'take', level });
  const startup = decideStartup({
    observation,
    states: new Map(states.map((state) => [state.name, state])),
    assign,
    closedFor,
    remarkOn: (state) => nodeRemark(state, steps.get(state.name)) ?? started.heldFor(state.name),
    reportAfter: options.newNodeReportAfterSeconds * 1000,
  });
  return {
    at: now,
    create: newcomers(observation),
    assign,
    steps,
    states,
    settled,
    newlySettled: states.filter(
      (state) => !changing.has(state.name) && isSettled(state, settlesAfter(settings), now),
    ),
    skipped: choice.skipped,
    unavailable: [
      ...observation.nodes.filter(isDownNewcomer).map(formatNewcomer),
      ...states.flatMap(formatUnavailable),
    ],
    slotsTaken: choice.slotsTaken,
    halted: halted === undefined ? undefined : [halted, ...noWayBack(observation)].join('; '),
    startup,
    awaitsWindow,
    startWaits: started.waits,
    rebootWaits: armed.remarks,
    rollbackTo: rollbackTo(observation, halted),
  };
}

/** @returns the decision without targets that a node doesn't have yet: for a look that could not record them. */
export function withoutNewTargets(
  { nodes }: Pick<PoolObservation, 'nodes'>,
  decision: PoolDecision,
): PoolDecision {
  const changing = new Set(nodes.flatMap((observed) => changesWith(observed, decision.assign)));
  const kept = <T>(map: ReadonlyMap<string, T>) => new Map([...map].filter(([name]) => !changing.has(name)));
  const startup = {
    ...decision.startup,
    admit: decision.startup.admit.filter((name) => !changing.has(name)),
  };
  return { ...decision, create: [], assign: kept(decision.assign), steps: kept(decision.steps), startup };
}

/**
 * When the pool has to be reconciled again even if nothing changes.
 *
 * @returns ms, or undefined when only a change can make a difference.
 */
export function lookAgainAfter(
  decision: PoolDecision,
  { soak, unhealthyAfter }: PoolSettings,
  options: Pick<RolloutOptions, 'leaseSeconds'>,
): number | undefined {
  // Measured from the time of the decision: what has happened since then causes no event.
  const now = decision.at;
  const waits: number[] = [];
  // A third of the lease's duration: two renewals may fail before it expires.
  if (decision.states.some(isAtWork)) waits.push((options.leaseSeconds * 1000) / 3);
  if (decision.skipped.length > 0 || decision.slotsTaken) waits.push(SKIPPED_RETRY);
  for (const node of decision.states) {
    const down = downSince(node, unhealthyAfter);
    if (down !== undefined && down + unhealthyAfter > now) waits.push(down + unhealthyAfter - now);
    const { progress } = node;
    if (progress.kind === 'updated' && progress.since !== undefined) {
      const soaks = progress.since + soak - now;
      if (soaks > 0) waits.push(soaks);
    }
  }
  for (const { overdueAt } of decision.startup.waiting)
    if (overdueAt !== undefined && overdueAt > now) waits.push(overdueAt - now);
  const opensAt = decision.awaitsWindow?.opensAt;
  if (opensAt !== undefined) waits.push(opensAt - now);
  // Another pool that becomes Updated is noticed at once; that it bakes, or is deleted, is not.
  for (const { until = now + SKIPPED_RETRY } of decision.startWaits) waits.push(Math.max(1, until - now));
  return waits.length === 0 ? undefined : Math.min(...waits, LONGEST_WAIT);
}

/** ms; the operator receives no event when a maintenance ends or a lease of another holder expires. */
const SKIPPED_RETRY = 30_000;

/** ms; Node's timers are limited to 2^31 - 1 ms, and a clock that was set has to be noticed in time. */
const LONGEST_WAIT = 3_600_000;

/** Nothing begins before the pool has the image that its nodes go to, or the label by which they go back to it. */
function isReadyToTake(target: PoolTarget): boolean {
  return target.kind !== 'awaiting-image' && !(target.kind === 'held' && target.awaits !== undefined);
}

/**
 * A node without a MachineConfigNode has no state yet, and counts against maxUnavailable when it is down, unless it has a
 * startup taint: then it never took a pod.
 */
function isDownNewcomer(observed: ObservedNode): boolean {
  const { node, machineConfigNode } = observed;
  if (isNewNode(node)) return false;
  const isDown = !isReady(node) || node.spec?.unschedulable === true;
  return machineConfigNode === undefined && isDown && awayOf(observed)?.kind !== 'switched-off';
}

function formatNewcomer({ node }: ObservedNode): PoolDecision['unavailable'][number] {
  return { name: node.metadata.name, why: isReady(node) ? 'new and cordoned' : 'new and not Ready' };
}

function formatUnavailable(node: NodeState): PoolDecision['unavailable'] {
  const why = unavailableBecause(node);
  return why === undefined ? [] : [{ name: node.name, why }];
}

/** A percentage is of the nodes that pods run on. */
function nodesInService({ nodes, settled = noneSettled }: PoolObservation): number {
  return nodes.filter(({ node }) => !isNewNode(node)).length + settled.nodes;
}

function choiceLimits(observation: PoolObservation, options: RolloutOptions, now: number) {
  const { pool, settings, nodes, settled = noneSettled } = observation;
  const most = maxUnavailable(pool.spec.maxUnavailable, nodesInService(observation));
  return {
    maxUnavailable: most - nodes.filter(isDownNewcomer).length,
    settled: settled.nodes,
    soak: settings.soak,
    unhealthyAfter: settings.unhealthyAfter,
    now,
    ...present({ operatorNode: options.operatorNode }),
  };
}

/**
 * An update that has started is finished outside of windows too: a node that stays cordoned runs no pods. A new node runs
 * none yet.
 */
function withinWindows(
  begin: Choice['begin'],
  states: readonly NodeState[],
  { windows, liveOutsideWindows }: PoolSettings,
  now: number,
): Pick<Choice, 'begin'> & Pick<PoolDecision, 'awaitsWindow'> {
  const state: WindowState = windows === undefined ? { open: true } : windowState(windows, now);
  if (state.open) return { begin, awaitsWindow: undefined };
  const free = states.filter((state) => state.work.cordon !== undefined || isNew(state));
  const freeNames = new Set(free.map(({ name }) => name));
  const may = begin.filter(
    ({ name, level }) => freeNames.has(name) || (level === 'Live' && liveOutsideWindows),
  );
  const { opensAt } = state;
  return { begin: may, awaitsWindow: may.length === begin.length ? undefined : { opensAt } };
}

/** Once: a pool that fails at the target of a rollback needs an admin. */
function rollbackTo(
  { pool, settings, target, lastGood }: PoolObservation,
  halted: string | undefined,
): NodeTarget | undefined {
  const free = target.kind !== 'held' && settings.rollback === undefined;
  return halted !== undefined && settings.autoRollback && free && closedByAdmin(pool, settings) === undefined
    ? lastGood?.()
    : undefined;
}

/**
 * A pool is never switched to standard mode automatically: that reboots every node that runs the image, while the nodes
 * that failed have rolled back already. So a pool has nothing to roll back to from its first image.
 */
function noWayBack({ pool, settings, target, lastGood }: PoolObservation): string[] {
  if (!settings.autoRollback || target.kind !== 'layered' || lastGood?.() !== undefined) return [];
  return [
    `it is not rolled back because no earlier image of the pool is known to work; shale disable --pool ${pool.metadata.name} switches its nodes to standard mode`,
  ];
}

/** @returns for a node: why nothing disruptive may begin on it; undefined when it may. */
function closedBecause(
  { pool, settings }: PoolObservation,
  halt: Halt,
): (node: NodeState) => string | undefined {
  const byAdmin = closedByAdmin(pool, settings);
  if (byAdmin !== undefined || halt.kind === 'none') return () => byAdmin;
  return (node) => (halt.mayRecover && awaitsRecovery(node) ? undefined : halt.why);
}

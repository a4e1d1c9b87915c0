import { maxUnavailable } from '../../api/max-unavailable.ts';
import { diskHolder } from '../gates/cordoned.ts';
import type { GateContext } from '../gates/gate.ts';
import { closingHold, poolHold } from '../gates/gates.ts';
import type { Hold, NodeHold } from '../gates/hold.ts';
import { leftToOthers, nextBoots } from '../next-boot/armed-nodes.ts';
import { isOpenForTarget } from '../next-boot/reboots-by-others.ts';
import type { LeaseOptions, RolloutOptions } from '../options.ts';
import {
  changesWith,
  chooseAssignments,
  keptFromJoining,
  missingMachineConfigNodes,
  type NewMachineConfigNode,
  readWithAssignment,
} from './assign-targets.ts';
import { chooseNodes } from './choose-nodes.ts';
import { awayOf } from './claims.ts';
import { delayStarts, disruptionLost, givesWay, startDisruptions, startInTime } from './delay-starts.ts';
import { handoverWaits, leftToClusterApi } from './driven-nodes.ts';
import { type FailureDomains, type FullDomain, failureDomainsOf } from './failure-domains.ts';
import { haltOf } from './failures.ts';
import { isNewNode } from './new-node.ts';
import { decideStartup, type StartupDecision } from './new-nodes.ts';
import { isReady } from './node-availability.ts';
import { nodeMessage } from './node-message.ts';
import type { NodeState } from './node-state.ts';
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
import { type SlotTaker, slotTaker } from './slot-takers.ts';

/** What nodes get and do next, and what the others wait for. */
interface PoolChoice {
  /** Targets to assign, by node. */
  readonly assign: ReadonlyMap<string, Assignment>;
  /** Steps to take, by node; nodes without one are left alone. */
  readonly steps: ReadonlyMap<string, NodeStep>;
  /** What is decided about the nodes with a startup taint. */
  readonly startup: StartupDecision;
  readonly skipped: readonly NodeHold[];
  /** Nodes could start, but those of `unavailable` use up maxUnavailable: the pool's, or that of their domains. */
  readonly slotsTaken: boolean;
  /** The failure domains without room, by the nodes that wait for them. */
  readonly domainWaits: ReadonlyMap<string, FullDomain>;
  /** Set if nodes could start but for the pool's maintenance windows. */
  readonly awaitsWindow: Hold | undefined;
  /** What else nodes wait for that could start: other pools, nodes that bake, a lock service. */
  readonly startWaits: readonly Hold[];
  /** What nodes wait for whose reboots are left to others, or that Cluster API has not handed over, by node. */
  readonly waitsForOthers: ReadonlyMap<string, string>;
  /** Set if all nodes that are not updated are among those. */
  readonly leftToOthers: Hold | undefined;
}

/** What is reported about a pool, and what its annotations become. */
interface PoolReport {
  /** MachineConfigNodes to create for nodes that have none. */
  readonly create: readonly NewMachineConfigNode[];
  /** Every node that was looked at and has a MachineConfigNode, with the targets above already given. */
  readonly states: readonly NodeState[];
  /** Nodes that were not looked at: all of them run the pool's target. */
  readonly settled: SettledCount;
  /** Those of `states` that need no attention until something about them changes. */
  readonly newlySettled: readonly NodeState[];
  /** Nodes that are unavailable for reasons that are not this rollout's; each takes one of maxUnavailable. */
  readonly unavailable: readonly SlotTaker[];
  /** Why the rollout has stopped, if failed nodes stopped it. */
  readonly halted: string | undefined;
  /** What the pool rolls back to because its rollout has stopped. */
  readonly rollbackTo: NodeTarget | undefined;
}

export interface PoolDecision extends PoolChoice, PoolReport {
  /** The moment it was decided for, in ms since the epoch. */
  readonly at: number;
}

type DecisionOptions = Pick<RolloutOptions, 'pace' | 'reports'>;

/** A pool at one moment, with what it assigns. */
interface PoolMoment extends GateContext {
  readonly observation: PoolObservation;
  readonly options: DecisionOptions;
  readonly targets: ReadonlyMap<string, Assignment>;
}

/**
 * Decides everything about one pool at one moment.
 *
 * @param now ms since the epoch.
 */
export function decidePool(
  observation: PoolObservation,
  options: DecisionOptions,
  now: number,
): PoolDecision {
  const moment = momentOf(observation, options, now);
  const holdOn = closingHold(moment);
  const choice = choose(moment, holdOn);
  return { at: now, ...choice, ...report(moment, choice) };
}

function momentOf(observation: PoolObservation, options: DecisionOptions, now: number): PoolMoment {
  const targets = chooseAssignments(observation, options.pace.stagingLimit, now);
  const states = observation.nodes.flatMap((observed) =>
    readWithAssignment(observation, observed, targets, now),
  );
  const settled = observation.settled?.nodes ?? 0;
  const halt = haltOf({ ...observation, states, settled }, now);
  return { ...observation, observation, options, targets, states, settled, halt, now };
}

type HoldOn = ReturnType<typeof closingHold>;

function choose(moment: PoolMoment, holdOn: HoldOn): PoolChoice {
  const { observation, options, states, targets } = moment;
  const steps = stepsUnderWay(moment, holdOn);
  const mayTake = isReadyToTake(observation.target);
  const { operatorNode } = options.pace;
  const domains = failureDomainsOf(observation.settings.failureDomains, observation.nodes);
  const mayStart = (node: NodeState) => mayTake && holdOn(node) === undefined;
  const isLater = givesWay(moment, mayStart);
  const choice = chooseNodes(states, {
    ...choiceLimits(moment, domains),
    only: (node) => mayStart(node) && !isLater(node),
  });
  const boots = nextBoots(
    { observation, states, domains, inService: nodesInService(observation) },
    { isOpenFor: (node) => mayTake && isOpenForTarget(holdOn(node)), operatorNode },
  );
  const started = delayStarts([...choice.begin, ...boots.starts], moment);
  const isChosen = new Set(choice.begin.map(({ name }) => name));
  const inTime = startInTime(
    started.begin.filter(({ name }) => isChosen.has(name)),
    moment,
  );
  const disruptions = startDisruptions(inTime.begin, moment);
  for (const { name, level } of disruptions.begin) steps.set(name, { kind: 'take', level });
  const armed = boots.choose(started);
  const assign = new Map(
    [...targets].map(([name, each]) => [name, { ...each, armed: armed.permit.has(name) }]),
  );
  const startup = decideStartup({
    observation,
    states: new Map(states.map((state) => [state.name, state])),
    assign,
    closedFor: (node) => {
      const hold = holdOn(node);
      return isOpenForTarget(hold) ? undefined : hold?.message;
    },
    messageOn: (node) =>
      nodeMessage(node, steps.get(node.name)) ??
      (started.heldFor(node.name) ?? disruptions.heldFor(node.name))?.message,
    reportAfter: options.reports.newNodeAfterSeconds * 1000,
  });
  const skipped = [
    ...choice.skipped,
    ...keptFromJoining(observation, moment.now),
    ...(mayTake ? keptFromTarget(states, holdOn) : []),
  ];
  const { slotsTaken, domainWaits } = choice;
  const startWaits = [...started.waits, ...disruptions.waits];
  const waits = {
    awaitsWindow: inTime.awaitsWindow,
    startWaits,
    waitsForOthers: new Map([...armed.remarks, ...handoverWaits(observation, states)]),
    leftToOthers:
      leftToClusterApi(observation, { states, steps }) ?? leftToOthers(states, armed.remarks, steps),
  };
  return { assign, steps, startup, skipped, slotsTaken, domainWaits, ...waits };
}

/** Nodes that somebody else holds, so that they have not even got the target. */
function keptFromTarget(states: readonly NodeState[], holdOn: HoldOn): readonly NodeHold[] {
  return states.flatMap((node) => {
    const { name } = node;
    const { assigned } = node.update;
    const { away, holders } = node.claims;
    const hold = diskHolder(holders);
    const isKept = !assigned && away === undefined && hold !== undefined && isOpenForTarget(holdOn(node));
    return isKept ? [{ name, ...hold }] : [];
  });
}

/** What is next on the nodes that the rollout holds already. */
function stepsUnderWay(moment: PoolMoment, holdOn: HoldOn): Map<string, NodeStep> {
  const { options, states, settings, now } = moment;
  const patience = options.pace.degradedPatienceSeconds * 1000;
  const { unhealthyAfter } = settings;
  const lost = disruptionLost(moment);
  return new Map(
    states.flatMap((state) => {
      const step = nodeStep(state, { closed: holdOn(state)?.message, patience, unhealthyAfter, now });
      if (step.kind === 'none') return [];
      const wait = step.kind === 'drain' ? lost(state) : undefined;
      if (wait === undefined) return [[state.name, step]];
      return [[state.name, { kind: wait.backsOut ? 'back-out' : 'keep-lease', why: wait.why }]];
    }),
  );
}

function report(
  { observation, settings, states, halt, now }: PoolMoment,
  { assign }: PoolChoice,
): PoolReport {
  const changing = new Set(observation.nodes.flatMap((observed) => changesWith(observed, assign)));
  return {
    create: missingMachineConfigNodes(observation, now),
    states,
    settled: observation.settled ?? noneSettled,
    // A percentage of a domain is of nodes that have to be read for their label.
    newlySettled: states.filter(
      (state) =>
        settings.failureDomains === undefined &&
        !changing.has(state.name) &&
        isSettled(state, settlesAfter(settings), now),
    ),
    unavailable: [
      ...observation.nodes.filter(isDownUnassigned).map(unassignedTaker),
      ...states.flatMap((state) => slotTaker(state) ?? []),
    ],
    halted: halt.kind === 'none' ? undefined : [halt.why, ...noRollback(observation)].join('; '),
    rollbackTo: halt.kind === 'none' ? undefined : rollbackTo(observation),
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
  { seconds }: Pick<LeaseOptions, 'seconds'>,
): number | undefined {
  // Measured from the time of the decision: what has happened since then causes no event.
  const now = decision.at;
  const waits: number[] = [];
  // A third of the lease's duration: two renewals may fail before it expires.
  if (decision.states.some(isAtWork)) waits.push((seconds * 1000) / 3);
  // Of a node that runs its target, too: until then its daemon is told to leave the disk alone.
  const isHeld = decision.states.some(({ claims: { holders } }) => diskHolder(holders) !== undefined);
  if (isHeld || decision.skipped.length > 0 || decision.slotsTaken || decision.domainWaits.size > 0)
    waits.push(SKIPPED_RETRY);
  for (const node of decision.states) {
    const down = downSince(node, unhealthyAfter);
    if (down !== undefined && down + unhealthyAfter > now) waits.push(down + unhealthyAfter - now);
    const { progress } = node.update;
    if (progress.kind === 'updated' && progress.since !== undefined) {
      const soaks = progress.since + soak - now;
      if (soaks > 0) waits.push(soaks);
    }
  }
  for (const { overdueAt } of decision.startup.waiting)
    if (overdueAt !== undefined && overdueAt > now) waits.push(overdueAt - now);
  const opensAt = decision.awaitsWindow?.until;
  if (opensAt !== undefined) waits.push(opensAt - now);
  // Another pool that becomes Updated is noticed at once; that it bakes, or is deleted, is not.
  for (const { until = now + SKIPPED_RETRY } of decision.startWaits) waits.push(Math.max(1, until - now));
  return waits.length === 0 ? undefined : Math.min(...waits, LONGEST_WAIT);
}

/** ms; the operator receives no event when a maintenance ends or a lease of another holder expires. */
const SKIPPED_RETRY = 30_000;

/** ms; Node's timers are limited to 2^31 - 1 ms, and a clock that was set has to be noticed in time. */
const LONGEST_WAIT = 3_600_000;

/** Nothing begins before the pool has the image that its nodes go to, or the label by which they roll back to it. */
function isReadyToTake(target: PoolTarget): boolean {
  return target.kind !== 'awaiting-image' && !(target.kind === 'rolled-back' && target.awaits !== undefined);
}

/**
 * A node without a MachineConfigNode has no state yet, and counts against maxUnavailable when it is down, unless it has
 * a startup taint: then it never took a pod.
 */
function isDownUnassigned(observed: ObservedNode): boolean {
  const { node, machineConfigNode } = observed;
  if (isNewNode(node)) return false;
  const isDown = !isReady(node) || node.spec?.unschedulable === true;
  return machineConfigNode === undefined && isDown && awayOf(observed)?.kind !== 'switched-off';
}

function unassignedTaker({ node }: ObservedNode): SlotTaker {
  const { name } = node.metadata;
  return isReady(node)
    ? { name, why: 'new and cordoned', remedy: `kubectl uncordon ${name}` }
    : { name, why: 'new and not Ready', remedy: `look at its kubelet: kubectl describe node ${name}` };
}

/** A percentage is of the nodes that pods run on. */
function nodesInService({ nodes, settled = noneSettled }: PoolObservation): number {
  return nodes.filter(({ node }) => !isNewNode(node)).length + settled.nodes;
}

function choiceLimits(
  { observation, options, settings, settled, now }: PoolMoment,
  domains: FailureDomains | undefined,
) {
  const { pool, nodes } = observation;
  const most = maxUnavailable(pool.spec.maxUnavailable, nodesInService(observation));
  return {
    maxUnavailable: most,
    pace: settings.drivenBy === undefined ? ('own' as const) : ('cluster-api' as const),
    down: nodes.filter(isDownUnassigned).map(({ node }) => node.metadata.name),
    settled,
    soak: settings.soak,
    unhealthyAfter: settings.unhealthyAfter,
    now,
    operatorNode: options.pace.operatorNode,
    domains,
  };
}

/** Once: a pool that fails at the target of a rollback needs an admin. */
function rollbackTo(observation: PoolObservation): NodeTarget | undefined {
  const { settings, target, lastGood } = observation;
  const free = target.kind !== 'rolled-back' && settings.rollback === undefined;
  return settings.autoRollback && free && poolHold(observation) === undefined ? lastGood?.() : undefined;
}

/**
 * A pool is never switched to standard mode automatically: that reboots every node that runs the image, while the nodes
 * that failed have rolled back already. So a pool has nothing to roll back to from its first image.
 */
function noRollback({ pool, settings, target, lastGood }: PoolObservation): string[] {
  if (!settings.autoRollback || target.kind !== 'layered' || lastGood?.() !== undefined) return [];
  return [
    `it is not rolled back because no earlier image of the pool is known to work; shale disable --pool ${pool.metadata.name} switches its nodes to standard mode`,
  ];
}

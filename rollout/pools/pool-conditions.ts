import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { inOneLine } from '../../api/visible-text.ts';
import type { FailingStep } from '../../cluster/failing-steps.ts';
import { formatDisputes, type PoolDispute } from '../../machineconfig/pool-disputes.ts';
import { NOTHING_BEGINS } from '../gates/closed.ts';
import { AWAITING_CLUSTER_API } from '../gates/driven-by.ts';
import { poolHold } from '../gates/gates.ts';
import type { Hold } from '../gates/hold.ts';
import type { StatusPart } from '../node-feature.ts';
import type { PoolDecision } from './decide-pool.ts';
import { formatDriven } from './driven-nodes.ts';
import { formatFailures } from './failing-steps.ts';
import { formatDomainWait } from './failure-domains.ts';
import { recoveryOf } from './failures.ts';
import { nodeMessage } from './node-message.ts';
import { isAway, type NodeState } from './node-state.ts';
import type { PoolRollback } from './pool-rollback.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';
import { formatDeadline, noDeadline } from './rollback-deadline.ts';
import { formatSlotsTaken } from './slot-takers.ts';

/** What a pool's status is made from. */
export interface PoolStatusInputs {
  /** The pool whose status it is. It may have changed since it was observed. */
  readonly pool: MachineConfigPool;
  readonly observation: StatusObservation;
  /** Nodes of the pool, those without a MachineConfigNode included. */
  readonly machineCount: number;
  readonly decision: PoolDecision;
  readonly findings: StatusFindings;
  /** What the operator can't do on the pool and its nodes, for long enough to be reported. Absent: nothing. */
  readonly failing?: readonly FailingStep[];
  /** Nodes that the pool lacks because another custom pool selects them, too. Absent: none. */
  readonly disputes?: readonly PoolDispute[];
  /** @returns the stream whose image a rendered config is based on, by the config's name. */
  readonly streamOfConfig?: (config: string) => string | undefined;
  /** What features beside the rollout add. Absent: nothing. */
  readonly parts?: readonly StatusPart[];
}

/** What was observed of the pool before the decision. */
export interface StatusObservation {
  readonly settings: PoolSettings;
  readonly target: PoolTarget;
  /** What the decision is about; absent: the pool as it is, with nothing left to render. */
  readonly decided?: DecidedOn;
  /** When the pool is rolled back unless its change is confirmed. Absent: never. */
  readonly rollback?: Pick<PoolRollback, 'deadline'>;
}

/** What acting on the decision found, by node. */
export interface StatusFindings {
  /** Such as a lease that another holds, or a pod that blocks a drain. */
  readonly notes: ReadonlyMap<string, string>;
  /** Drains that exceed --drain-report-minutes, and what blocks them. */
  readonly stuckDrains: ReadonlyMap<string, string>;
  /** Hooks that exceed --hook-report-minutes. */
  readonly overdueHooks: ReadonlyMap<string, string>;
}

/** The state of a pool that a decision is about: the pool may have changed since. */
export interface DecidedOn {
  readonly generation: number | undefined;
  /** What the pool selects has changed, and is not rendered yet. */
  readonly renderingDue: boolean;
}

/** What a condition says. */
export type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

/** Nodes named in a message; the rest is counted, so that the message of a pool of thousands stays readable. */
const NAMED_NODES = 10;

export function updatedVerdict(inputs: PoolStatusInputs, done: boolean): Verdict {
  const { machineCount, decision } = inputs;
  const { target } = inputs.observation;
  if (!done) return { status: 'False', reason: 'NodesOutstanding', message: '' };
  if (target.kind === 'rolled-back')
    return { status: 'False', reason: 'RolledBack', message: `The pool was ${formatRolledBack(target)}` };
  const away = decision.states.filter(isAway).length;
  const all = formatAllRun(machineCount, away, formatPoolTarget(target));
  const recovered = listed(decision.states.flatMap((node) => recoveryOf(node) ?? []).toSorted());
  const message = [all, ...recovered, ...formatObstacles(decision.states)].join('; ');
  return { status: 'True', reason: 'AllNodesUpdated', message };
}

function formatAllRun(nodes: number, away: number, target: string): string {
  if (nodes === 0) return `The pool has no nodes; its target is ${target}`;
  if (away > 0)
    return `${nodes - away} of ${plural(nodes, 'node')} ${nodes === 1 ? 'runs' : 'run'} ${target}`;
  return nodes === 1 ? `The pool's only node runs ${target}` : `All ${nodes} nodes run ${target}`;
}

function formatRolledBack({ why, ownTarget }: PoolTarget & { readonly kind: 'rolled-back' }): string {
  return `${why}; it stays there until the annotation ${annotations.rollback} is removed or its target is no longer ${formatPoolTarget(ownTarget)}`;
}

/** What nodes do to get there, where it is not what the change itself cost. */
function formatRollback({ why, awaits, reboots }: PoolTarget & { readonly kind: 'rolled-back' }): string[] {
  if (awaits !== undefined) {
    const until = new Date(awaits.until).toISOString();
    return [
      why,
      `nodes wait until ${until} at the latest for a label by which they don't reboot: ${awaits.why}`,
    ];
  }
  return reboots === undefined ? [why] : [why, `nodes reboot to the image as it was recorded: ${reboots}`];
}

/** Reported before a rollout starts as well, so that an admin knows which nodes it would not reach. */
function formatObstacles(states: readonly NodeState[]): string[] {
  const obstacles = states.flatMap((node) => {
    if (node.claims.away !== undefined) return [`${node.name} is not waited for: ${node.claims.away.why}`];
    return node.claims.holders.slice(0, 1).map(({ message }) => `${node.name} would be skipped: ${message}`);
  });
  return listed(obstacles.toSorted());
}

/** @returns the verdict where no update starts in the pool, whatever its nodes do. */
function closedVerdict(
  { pool, observation: { settings, target }, decision }: PoolStatusInputs,
  count: string,
): Verdict | undefined {
  const hold = poolHold({ pool, settings });
  // What can't be read or done is reported behind what failed.
  if (hold !== undefined && hold.reason !== NOTHING_BEGINS) return adminVerdict(hold, count, decision);
  if (target.kind === 'none') return { status: 'False', reason: 'NoTarget', message: target.why };
  if (target.kind === 'awaiting-image') {
    const message = `Nodes stay on what they run: ${target.why}`;
    return target.state === 'BuildFailed'
      ? { status: 'False', reason: 'BuildFailed', message }
      : { status: 'True', reason: target.state, message };
  }
  if (decision.halted !== undefined)
    return { status: 'False', reason: 'RolloutStopped', message: `${count}; ${decision.halted}` };
  return hold && adminVerdict(hold, count, decision);
}

function adminVerdict({ reason, message }: Hold, count: string, { states }: PoolDecision): Verdict {
  const parts =
    reason === 'Paused' ? ['The pool is paused', count, ...formatStaged(states)] : [count, message];
  return { status: 'False', reason, message: parts.join('; ') };
}

/** Nodes that need no download once the pool is resumed. */
function formatStaged(states: readonly NodeState[]): string[] {
  const staged = states.filter(
    ({ update: { assigned, progress } }) => assigned && progress.kind === 'staged',
  ).length;
  return staged === 0 ? [] : [`${plural(staged, 'node')} ${staged === 1 ? 'has' : 'have'} staged it`];
}

export function updatingVerdict(inputs: PoolStatusInputs, done: boolean, updated: number): Verdict {
  const { machineCount, decision } = inputs;
  const { target } = inputs.observation;
  const count = `${updated} of ${plural(machineCount, 'node')} ${machineCount === 1 ? 'runs' : 'run'} ${formatPoolTarget(target)}`;
  if (done) {
    return target.kind === 'rolled-back'
      ? { status: 'False', reason: 'RolledBack', message: `${count}; ${formatRolledBack(target)}` }
      : { status: 'False', reason: 'AllNodesUpdated', message: '' };
  }
  const closed = closedVerdict(inputs, count);
  if (closed !== undefined) return closed;
  const messages = nodeMessages(inputs);
  const waits = waitingVerdict(inputs, count, messages);
  if (waits !== undefined) return waits;
  const { slotsTaken, skipped } = decision;
  const why = [
    ...(target.kind === 'rolled-back' ? formatRollback(target) : []),
    ...formatDriverOf(inputs),
    ...(slotsTaken ? [formatSlotsTaken(decision.unavailable, [...decision.domainWaits.values()])] : []),
  ];
  return {
    status: 'True',
    reason:
      target.kind === 'rolled-back'
        ? 'RollingBack'
        : slotsTaken
          ? 'MaxUnavailableReached'
          : skipped.length > 0
            ? 'NodesPassedBy'
            : 'NodesUpdating',
    message: [count, ...why, ...messages].join('; '),
  };
}

/** @returns the verdict where nodes could start and wait for something else than other nodes' slots. */
function waitingVerdict(
  inputs: PoolStatusInputs,
  count: string,
  messages: readonly string[],
): Verdict | undefined {
  const { awaitsWindow, startWaits, leftToOthers } = inputs.decision;
  const starts = [...startWaits, awaitsWindow].filter((hold) => hold !== undefined);
  const holds = starts.length > 0 || leftToOthers === undefined ? starts : [leftToOthers];
  const [first] = holds;
  if (first === undefined) return undefined;
  const waits = holds.map(({ message }) => message);
  const driver = first.reason === AWAITING_CLUSTER_API ? [] : formatDriverOf(inputs);
  return {
    status: 'True',
    reason: first.reason,
    message: [count, ...driver, ...waits, ...messages].join('; '),
  };
}

/** Who decides which nodes are next, if that is not Shale. */
function formatDriverOf({ observation, decision: { states } }: PoolStatusInputs): string[] {
  const { drivenBy } = observation.settings;
  return drivenBy === undefined ? [] : [formatDriven(drivenBy, states)];
}

/** The condition UpdatesHeld: what nodes wait for that could start, apart from maintenance windows. */
export function heldUpdatesVerdict({ startWaits }: Pick<PoolDecision, 'startWaits'>): Verdict | undefined {
  const [first] = startWaits;
  if (first === undefined) return undefined;
  return {
    status: 'True',
    reason: first.reason,
    message: startWaits.map(({ message }) => message).join('; '),
  };
}

/** The condition ChangeTried: when the pool is rolled back unless somebody confirms its change. */
export function triedVerdict({ pool, observation: { rollback } }: PoolStatusInputs): Verdict | undefined {
  const { deadline = noDeadline } = rollback ?? {};
  switch (deadline.kind) {
    case 'waits':
    case 'passed':
      return {
        status: 'True',
        reason: 'AwaitingConfirmation',
        message: formatDeadline(pool.metadata.name, deadline),
      };
    case 'refused':
      return { status: 'False', reason: 'DeadlineRefused', message: deadline.why };
    case 'unreadable':
      return { status: 'False', reason: 'DeadlineRefused', message: "its annotation can't be read" };
    case 'none':
      return undefined;
  }
}

/** The condition SettingsWarning: what an admin set without effect, or in a way that a later version won't read. */
export function settingsVerdict({ warnings }: Pick<PoolSettings, 'warnings'>): Verdict | undefined {
  if (warnings.length === 0) return undefined;
  return { status: 'True', reason: 'AnnotationsToReplace', message: warnings.join('; ') };
}

/** The reason of Degraded where nothing else is wrong: the pool's nodes go on, and others are in no pool. */
export const NODES_IN_SEVERAL_POOLS = 'NodesInSeveralPools';

/** One message for each node that waits for something. */
function nodeMessages({ decision, findings: { notes } }: PoolStatusInputs): string[] {
  const messages = new Map<string, string>();
  for (const state of decision.states) {
    const domain = decision.domainWaits.get(state.name);
    const message =
      nodeMessage(state, decision.steps.get(state.name)) ??
      decision.waitsForOthers.get(state.name) ??
      (domain && formatDomainWait(domain));
    if (message !== undefined) messages.set(state.name, message);
  }
  for (const { name, why } of decision.unavailable) messages.set(name, `unavailable: ${why}`);
  for (const { name, message } of decision.skipped) messages.set(name, `skipped: ${message}`);
  for (const [name, note] of notes) messages.set(name, note);
  return listed([...messages].toSorted(by(([name]) => name)).map(([name, why]) => `${name}: ${why}`));
}

export function nodeDegradedVerdict(states: readonly NodeState[]): Verdict {
  const reports = states.flatMap(({ name, update: { progress }, claims: { away } }) =>
    away === undefined && progress.kind === 'degraded'
      ? [`Node ${name} is reporting: ${JSON.stringify(inOneLine(progress.why))}`]
      : [],
  );
  return reports.length === 0
    ? { status: 'False', reason: 'NoNodeDegraded', message: '' }
    : { status: 'True', reason: 'NodesDegraded', message: listed(reports.toSorted()).join(', ') };
}

export function degradedVerdict({
  pool,
  observation: { settings, target },
  decision,
  findings: { stuckDrains, overdueHooks },
  failing = [],
  disputes = [],
}: PoolStatusInputs): Verdict {
  const render = pool.status?.conditions?.find(({ type }) => type === 'RenderDegraded');
  const causes = [
    ...(render?.status === 'True' ? [render.message] : []),
    ...(target.kind === 'awaiting-image' && target.state === 'BuildFailed' ? [target.why] : []),
    ...(decision.halted === undefined ? [] : [decision.halted]),
    ...formatRefusals(decision.states),
    ...listed([...stuckDrains, ...overdueHooks].map(([name, why]) => `Node ${name} ${why}`).toSorted()),
    ...listed([...formatFailures(failing), ...formatDaemons(decision.states)].toSorted()),
    ...settings.problems,
    ...(settings.closed === undefined || settings.problems.length > 0 ? [] : [settings.closed]),
  ];
  const nodes = nodeDegradedVerdict(decision.states);
  const lacking = formatDisputes(disputes);
  if (causes.length > 0)
    return { status: 'True', reason: 'Degraded', message: [...causes, ...lacking].join('; ') };
  if (lacking.length > 0) {
    const failed = nodes.status === 'True' ? [nodes.message] : [];
    return { status: 'True', reason: NODES_IN_SEVERAL_POOLS, message: [...lacking, ...failed].join('; ') };
  }
  return nodes.status === 'True' ? nodes : { status: 'False', reason: 'AsExpected', message: '' };
}

/** Nodes whose daemons can't do what they have to. */
function formatDaemons(states: readonly NodeState[]): string[] {
  return states.flatMap(({ name, update: { daemonFails } }) =>
    daemonFails === undefined ? [] : [`Node ${name}: ${daemonFails}`],
  );
}

/** Nodes that refuse the target until the config or the host is changed; those with the same reason are one entry. */
function formatRefusals(states: readonly NodeState[]): string[] {
  const byReason = Map.groupBy(
    states.flatMap(({ name, update: { progress }, claims: { away } }) =>
      away === undefined && progress.kind === 'preparing' && progress.stalled === 'refused'
        ? [{ name, why: progress.why ?? '' }]
        : [],
    ),
    ({ why }) => why,
  );
  return listed(
    [...byReason].map(([why, nodes]) => {
      const names = listed(nodes.map(({ name }) => name).toSorted());
      return `refused by ${names.join(', ')}: ${why}`;
    }),
  );
}

/** @returns a target as conditions and events show it. */
export function formatPoolTarget(target: PoolTarget): string {
  switch (target.kind) {
    case 'none':
      return 'no configuration';
    case 'standard':
      return target.target.config;
    case 'rolled-back': {
      const { config, image } = target.target;
      return image === undefined ? config : `${config} as ${image}`;
    }
    case 'awaiting-image':
      return `${target.config} as an image`;
    case 'layered':
      return `${target.target.config} as ${target.target.image}`;
  }
}

function listed(lines: readonly string[]): string[] {
  const more = lines.length - NAMED_NODES;
  return more <= 0 ? [...lines] : [...lines.slice(0, NAMED_NODES), `and ${more} more`];
}

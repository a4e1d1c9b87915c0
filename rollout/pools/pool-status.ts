import { isDeepStrictEqual } from 'node:util';
import type {
  MachineConfigPool,
  MachineConfigPoolStatus,
  PoolConditionType,
  PoolConfiguration,
} from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { setCondition } from '../../cluster/update-object.ts';
import { isUnavailable, reasonToSkip } from './choose-nodes.ts';
import type { PoolDecision } from './decide-pool.ts';
import type { NodeState } from './node-state.ts';
import type { NodeStep } from './node-step.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

/** What a pool's status is made from. */
export interface PoolStatusInputs {
  readonly pool: MachineConfigPool;
  readonly settings: Pick<PoolSettings, 'problems' | 'closed'>;
  readonly target: PoolTarget;
  /** Nodes of the pool, those without a MachineConfigNode included. */
  readonly machineCount: number;
  readonly decision: PoolDecision;
  /** What carrying out the decision brought to light, by node: a lease not had, a pod that blocks a drain. */
  readonly notes: ReadonlyMap<string, string>;
  /** Drains that take longer than drains should, and what blocks them, by node. */
  readonly stuckDrains: ReadonlyMap<string, string>;
}

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

/** Nodes named in a message; the rest is counted, so that a pool of thousands keeps a message one can read. */
const NAMED_NODES = 10;

/**
 * The status of a pool: MCO's counts and conditions, RenderDegraded as the rendering left it.
 *
 * `status.configuration` moves only when every node runs the new one, so it always names what the pool can be relied on
 * to have.
 *
 * @param now ms since the epoch; goes into conditions whose status changes.
 */
export function poolStatus(inputs: PoolStatusInputs, now: number): MachineConfigPoolStatus {
  const { pool, machineCount, decision } = inputs;
  const { states, settled } = decision;
  const updatedStates = states.filter(isUpdated);
  const updated = updatedStates.length + settled.nodes;
  const ready =
    updatedStates.filter((node) => node.ready && node.schedulable && !isAway(node)).length + settled.nodes;
  const unavailable = states.filter(isUnavailable);
  const degraded = states.filter(isDegraded);
  const away = states.filter(isAway).length;
  const done = ready === machineCount - away && isResolved(inputs.target);
  const configuration = done ? configurationOf(inputs) : pool.status?.configuration;
  return {
    ...(pool.metadata.generation === undefined ? {} : { observedGeneration: pool.metadata.generation }),
    ...(configuration === undefined ? {} : { configuration }),
    machineCount,
    updatedMachineCount: updated,
    readyMachineCount: ready,
    unavailableMachineCount: unavailable.length,
    degradedMachineCount: degraded.length,
    ...architecturesOf(decision, pool.status),
    conditions: conditionsOf(inputs, done, updated, now),
  };
}

/** Those that the pool had stay known while no node tells its own: no image is made anew for that. */
function architecturesOf(
  { states, settled }: PoolDecision,
  before: MachineConfigPoolStatus | undefined,
): Pick<MachineConfigPoolStatus, 'architectures'> {
  const told = [...states.flatMap(({ architecture }) => architecture ?? []), ...settled.architectures];
  const architectures = told.length === 0 ? before?.architectures : [...new Set(told)].sort();
  return architectures === undefined ? {} : { architectures };
}

function configurationOf({ pool, target }: PoolStatusInputs): PoolConfiguration | undefined {
  if (target.kind !== 'held') return pool.spec.configuration;
  const { config } = target.target;
  return pool.status?.configuration?.name === config ? pool.status.configuration : { name: config };
}

function isUpdated({ assigned, progress }: NodeState): boolean {
  return assigned && progress.kind === 'updated';
}

function isAway({ away }: NodeState): boolean {
  return away !== undefined;
}

function isDegraded({ away, progress }: NodeState): boolean {
  return away === undefined && progress.kind === 'degraded';
}

function isResolved(target: PoolTarget): boolean {
  return target.kind === 'standard' || target.kind === 'layered' || target.kind === 'held';
}

const BUILD_CONDITIONS = ['BuildPending', 'Building', 'BuildSuccess', 'BuildFailed'] as const;

function conditionsOf(
  inputs: PoolStatusInputs,
  done: boolean,
  updated: number,
  now: number,
): readonly Condition[] & Condition[] {
  const present = (inputs.pool.status?.conditions ?? []).filter(
    // Switching layering off leaves no trace of it.
    ({ type }) => inputs.target.kind !== 'standard' || !BUILD_CONDITIONS.some((build) => build === type),
  );
  const verdicts: readonly (readonly [PoolConditionType, Verdict])[] = [
    ['Updated', updatedVerdict(inputs, done)],
    ['Updating', updatingVerdict(inputs, done, updated)],
    ['NodeDegraded', nodeDegradedVerdict(inputs.decision.states)],
    ['Degraded', degradedVerdict(inputs)],
    ...buildVerdicts(inputs),
  ];
  return verdicts.reduce<Condition[]>(
    (conditions, [type, verdict]) => [...setCondition(conditions, { type, ...verdict }, new Date(now))],
    present,
  );
}

function updatedVerdict({ target, machineCount, decision }: PoolStatusInputs, done: boolean): Verdict {
  if (!done) return { status: 'False', reason: 'NodesOutstanding', message: '' };
  if (target.kind === 'held') return { status: 'False', reason: 'RolledBack', message: holdInWords(target) };
  const away = decision.states.filter(isAway).length;
  const who = away === 0 ? `All ${machineCount} nodes` : `All nodes but ${away} of ${machineCount}`;
  const message = [`${who} run ${targetInWords(target)}`, ...obstaclesInWords(decision.states)].join('; ');
  return { status: 'True', reason: 'AllNodesUpdated', message };
}

function holdInWords({ why, wanted }: PoolTarget & { readonly kind: 'held' }): string {
  return `${why}; kept there until the annotation ${annotations.rollback} goes or the pool wants another than ${targetInWords(wanted)}`;
}

/** Told before a rollout begins, too: whoever is about to start one knows then what it will not get to. */
function obstaclesInWords(states: readonly NodeState[]): string[] {
  const told = states.flatMap((node) => {
    if (node.away !== undefined) return [`${node.name} is not waited for: ${node.away.why}`];
    const why = reasonToSkip(node);
    return why === undefined ? [] : [`${node.name} would be passed by: ${why}`];
  });
  return listed(told.toSorted());
}

function updatingVerdict(inputs: PoolStatusInputs, done: boolean, updated: number): Verdict {
  const { pool, settings, target, machineCount, decision } = inputs;
  const count = `${updated} of ${machineCount} nodes run ${targetInWords(target)}`;
  if (done) {
    return target.kind === 'held'
      ? { status: 'False', reason: 'RolledBack', message: `${count}; ${holdInWords(target)}` }
      : { status: 'False', reason: 'AllNodesUpdated', message: '' };
  }
  if (pool.spec.paused === true)
    return { status: 'False', reason: 'Paused', message: `The pool is paused; ${count}` };
  if (target.kind === 'none') return { status: 'False', reason: 'NoTarget', message: target.why };
  if (target.kind === 'awaiting-image') {
    return target.state === 'BuildFailed'
      ? { status: 'False', reason: 'BuildFailed', message: `Nodes keep what they run: ${target.why}` }
      : { status: 'True', reason: target.state, message: `Nodes keep what they run: ${target.why}` };
  }
  if (decision.halted !== undefined)
    return { status: 'False', reason: 'RolloutStopped', message: `${count}; ${decision.halted}` };
  if (settings.closed !== undefined)
    return { status: 'False', reason: 'NothingBegins', message: `${count}; ${settings.closed}` };
  const remarks = nodeRemarks(inputs);
  const { awaitsWindow } = decision;
  if (awaitsWindow !== undefined) {
    const message = [count, windowInWords(awaitsWindow), ...remarks].join('; ');
    return { status: 'True', reason: 'AwaitingMaintenanceWindow', message };
  }
  const { slotsTaken, skipped } = decision;
  const why = [...(target.kind === 'held' ? [target.why] : []), ...(slotsTaken ? [SLOTS_TAKEN] : [])];
  return {
    status: 'True',
    reason:
      target.kind === 'held'
        ? 'RollingBack'
        : slotsTaken
          ? 'MaxUnavailableReached'
          : skipped.length > 0
            ? 'NodesPassedBy'
            : 'NodesUpdating',
    message: [count, ...why, ...remarks].join('; '),
  };
}

const SLOTS_TAKEN = 'no node begins while as many as maxUnavailable are unavailable for other reasons';

function windowInWords({ opensAt }: NonNullable<PoolDecision['awaitsWindow']>): string {
  return opensAt === undefined
    ? 'no maintenance window ever opens'
    : `the next maintenance window opens at ${new Date(opensAt).toISOString()}`;
}

/** One remark per node that waits for something an admin may want to know of. */
function nodeRemarks({ decision, notes }: PoolStatusInputs): string[] {
  const remarks = new Map<string, string>();
  for (const { name, progress, away } of decision.states) {
    if (progress.kind === 'preparing' && progress.why !== undefined) remarks.set(name, progress.why);
    if (away !== undefined) remarks.set(name, `not waited for: ${away.why}`);
  }
  for (const [name, step] of decision.steps) {
    const why = waitingFor(step);
    if (why !== undefined) remarks.set(name, why);
  }
  for (const { name, why } of decision.unavailable) remarks.set(name, `unavailable: ${why}`);
  for (const { name, why } of decision.skipped) remarks.set(name, `passed by: ${why}`);
  for (const [name, note] of notes) remarks.set(name, note);
  return listed(
    [...remarks].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, why]) => `${name}: ${why}`),
  );
}

function waitingFor(step: NodeStep): string | undefined {
  switch (step.kind) {
    case 'hold':
    case 'suspend':
    case 'back-out':
    case 'let-go':
      return step.why;
    case 'drain':
      return 'is being drained';
    case 'take':
    case 'finish':
    case 'none':
      return undefined;
  }
}

function nodeDegradedVerdict(states: readonly NodeState[]): Verdict {
  const reports = states.flatMap(({ name, progress, away }) =>
    away === undefined && progress.kind === 'degraded'
      ? [`Node ${name} is reporting: ${JSON.stringify(progress.why)}`]
      : [],
  );
  return reports.length === 0
    ? { status: 'False', reason: 'NoNodeDegraded', message: '' }
    : { status: 'True', reason: 'NodesDegraded', message: listed(reports.toSorted()).join(', ') };
}

function degradedVerdict({ pool, settings, target, decision, stuckDrains }: PoolStatusInputs): Verdict {
  const render = pool.status?.conditions?.find(({ type }) => type === 'RenderDegraded');
  const causes = [
    ...(render?.status === 'True' ? [render.message] : []),
    ...(target.kind === 'awaiting-image' && target.state === 'BuildFailed' ? [target.why] : []),
    ...(decision.halted === undefined ? [] : [decision.halted]),
    ...refusalsInWords(decision.states),
    ...listed([...stuckDrains].map(([name, why]) => `Node ${name} ${why}`).toSorted()),
    ...settings.problems,
    ...(settings.closed === undefined || settings.problems.length > 0 ? [] : [settings.closed]),
  ];
  const nodes = nodeDegradedVerdict(decision.states);
  if (causes.length > 0) return { status: 'True', reason: 'Degraded', message: causes.join('; ') };
  return nodes.status === 'True' ? nodes : { status: 'False', reason: 'AsExpected', message: '' };
}

/** Nodes that keep what they run for good, until somebody changes the config or the host: nodes of one kind say the same. */
function refusalsInWords(states: readonly NodeState[]): string[] {
  const byReason = Map.groupBy(
    states.flatMap(({ name, progress, away }) =>
      away === undefined && progress.kind === 'preparing' && progress.refused === true
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

/** Exactly one of the build conditions is True in a layered pool; a pool that never was layered has none. */
function buildVerdicts({ target }: PoolStatusInputs): (readonly [PoolConditionType, Verdict])[] {
  const state = buildState(target);
  if (state === undefined) return [];
  return BUILD_CONDITIONS.map((type) => [
    type,
    type === state.type
      ? { status: 'True', reason: type, message: state.message }
      : { status: 'False', reason: state.type, message: '' },
  ]);
}

function buildState(
  target: PoolTarget,
): { readonly type: PoolConditionType; readonly message: string } | undefined {
  switch (target.kind) {
    case 'none':
    case 'standard':
      return undefined;
    case 'awaiting-image':
      return { type: target.state, message: target.why };
    case 'held':
      return buildState(target.wanted);
    case 'layered':
      return { type: 'BuildSuccess', message: `MachineOSBuild ${target.build}: ${target.target.image}` };
  }
}

/** @returns a target as conditions and events show it. */
export function targetInWords(target: PoolTarget): string {
  switch (target.kind) {
    case 'none':
      return 'no configuration';
    case 'standard':
      return target.target.config;
    case 'held': {
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

/** ms between two writes that tell of nothing but other counts: in a rollout these change with every node. */
const COUNTS_INTERVAL = 2_000;

/**
 * @param before the status as it stands, @param after and as it should be.
 * @param writtenAt when this process wrote it last, @param now and now: ms since the epoch.
 * @returns ms to wait before the new one is written; 0 where there is nothing to wait for. What an admin or a tool waits for
 *   (a condition that turns, another configuration) is told at once.
 */
export function statusWait(
  before: MachineConfigPoolStatus | undefined,
  after: MachineConfigPoolStatus,
  writtenAt: number | undefined,
  now: number,
): number {
  if (writtenAt === undefined || isDeepStrictEqual(before, after)) return 0;
  const isNews = !isDeepStrictEqual(verdictsOf(before), verdictsOf(after));
  // A clock that was set back holds nothing up.
  return isNews || now < writtenAt ? 0 : Math.max(0, writtenAt + COUNTS_INTERVAL - now);
}

function verdictsOf(status: MachineConfigPoolStatus | undefined): readonly unknown[] {
  const { configuration, observedGeneration, conditions = [] } = status ?? {};
  const verdicts = conditions.map(({ type, status: is, reason }) => [type, is, reason]);
  return [configuration?.name, observedGeneration, verdicts];
}

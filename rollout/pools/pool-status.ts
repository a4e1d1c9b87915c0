import { isDeepStrictEqual } from 'node:util';
import {
  LONGEST_WHY,
  type MachineConfigPoolStatus,
  MOST_NAMED_NODES,
  type PoolConditionType,
  type PoolConfiguration,
} from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import { by, byCodeUnits } from '../../api/order.ts';
import { present } from '../../api/present.ts';
import { reportedSteps } from '../../cluster/failing-steps.ts';
import { observedAt, setReadiness } from '../../cluster/readiness.ts';
import { setCondition, withinLimit } from '../../cluster/update-object.ts';
import type { StatusPart } from '../node-feature.ts';
import { bootImageOf } from './boot-image.ts';
import { isUnavailable } from './choose-nodes.ts';
import type { PoolDecision } from './decide-pool.ts';
import { newNodesVerdict } from './new-nodes.ts';
import type { NodeAvailability } from './node-availability.ts';
import { isAway, isDegraded, isUpdated, type NodeState } from './node-state.ts';
import {
  degradedVerdict,
  heldUpdatesVerdict,
  nodeDegradedVerdict,
  type PoolStatusInputs,
  type StatusObservation,
  settingsVerdict,
  triedVerdict,
  updatedVerdict,
  updatingVerdict,
  type Verdict,
} from './pool-conditions.ts';
import { poolReadiness } from './pool-readiness.ts';
import type { PoolTarget } from './pool-target.ts';
import { noDeadline } from './rollback-deadline.ts';

/**
 * The status of a pool: MCO's counts and conditions, RenderDegraded as the rendering left it.
 *
 * `status.configuration` moves only when every node runs the new one, so it always names what the pool can be relied on
 * to have.
 *
 * @param now ms since the epoch; goes into conditions whose status changes.
 */
export function poolStatus(inputs: PoolStatusInputs, now: number): MachineConfigPoolStatus {
  const { pool, decision } = inputs;
  const counts = countsOf(inputs);
  const done = isDone(inputs, counts);
  return {
    ...configurationsOf(inputs, done),
    ...counts,
    ...addedParts(inputs),
    ...architecturesOf(decision, pool.status),
    ...present({
      bootImage: bootImageOf(inputs, now),
      rollbackDeadline: recordedDeadline(inputs.observation),
    }),
    ...namedNodes(decision),
    ...heldUpdatesOf(decision),
    ...failingStepsOf(inputs),
    conditions: conditionsOf(inputs, done, counts.updatedMachineCount, now),
  };
}

type Counts = ReturnType<typeof countsOf>;

/** MCO's counts: a settled node is updated, ready and available. */
function countsOf({ machineCount, decision: { states, settled } }: PoolStatusInputs) {
  const updated = states.filter(isUpdated);
  const ready = updated.filter((node) => isServing(node.availability) && !isAway(node));
  return {
    machineCount,
    updatedMachineCount: updated.length + settled.nodes,
    readyMachineCount: ready.length + settled.nodes,
    unavailableMachineCount: states.filter(isUnavailable).length,
    degradedMachineCount: states.filter(isDegraded).length,
  };
}

/** Every node runs the target that is waited for, and is in service. */
function isDone(
  { observation: { target }, decision: { states } }: PoolStatusInputs,
  { machineCount, readyMachineCount }: Counts,
): boolean {
  return readyMachineCount === machineCount - states.filter(isAway).length && isResolved(target);
}

function configurationsOf(inputs: PoolStatusInputs, done: boolean) {
  const { status } = inputs.pool;
  const configuration = done ? configurationOf(inputs) : status?.configuration;
  return present({
    observedGeneration: observedGeneration(inputs),
    // The rendering writes it.
    observedMachineConfigs: status?.observedMachineConfigs,
    configuration,
    osImageStream: done ? streamOf(inputs, configuration) : status?.osImageStream,
  });
}

function addedParts({ machineCount, decision, parts = [] }: PoolStatusInputs): ReturnType<StatusPart> {
  const unavailable = decision.states.filter(isUnavailable).map(({ name }) => name);
  return Object.assign({}, ...parts.map((part) => part({ machineCount, unavailable })));
}

function recordedDeadline({ rollback }: StatusObservation): MachineConfigPoolStatus['rollbackDeadline'] {
  const { deadline = noDeadline } = rollback ?? {};
  return deadline.kind === 'none' ? undefined : deadline.recorded;
}

function isServing({ ready, schedulable }: NodeAvailability): boolean {
  return ready && schedulable;
}

/** Admission policies warn by it whom it concerns (manifests/base/maintenance-admission.yaml). */
function namedNodes({
  states,
}: Pick<PoolDecision, 'states'>): Pick<MachineConfigPoolStatus, 'heldNodes' | 'updatingNodes'> {
  const held = states.flatMap(
    ({
      name,
      claims: {
        holders: [first],
      },
    }) => (first === undefined ? [] : [{ name, why: first.message.slice(0, LONGEST_WHY) }]),
  );
  const updating = states.filter(isUpdating).map(({ name }) => name);
  return {
    ...(held.length === 0
      ? {}
      : { heldNodes: held.toSorted(by(({ name }) => name)).slice(0, MOST_NAMED_NODES) }),
    ...(updating.length === 0
      ? {}
      : { updatingNodes: updating.toSorted(byCodeUnits).slice(0, MOST_NAMED_NODES) }),
  };
}

/** Its lease is the rollout's: a mark that it left on a cordon is no work. */
function isUpdating({ claims: { lease }, work }: NodeState): boolean {
  return lease.by === 'us' || work.grant !== undefined;
}

/** Cut as conditions are (setCondition): the API server would refuse the whole status. */
function heldUpdatesOf({
  startWaits,
}: Pick<PoolDecision, 'startWaits'>): Pick<MachineConfigPoolStatus, 'heldUpdates'> {
  if (startWaits.length === 0) return {};
  return {
    heldUpdates: startWaits.map(({ reason, message }) => ({ reason, message: withinLimit(message) })),
  };
}

function failingStepsOf({ failing = [] }: PoolStatusInputs): Pick<MachineConfigPoolStatus, 'failingSteps'> {
  return failing.length === 0 ? {} : { failingSteps: reportedSteps(failing) };
}

/** The spec is observed once it is decided on: while its rendering is due, the status is about the one before. */
function observedGeneration({ pool, observation: { decided } }: PoolStatusInputs): number | undefined {
  if (decided === undefined) return pool.metadata.generation;
  return decided.renderingDue ? pool.status?.observedGeneration : decided.generation;
}

/** The pool keeps its architectures while no node reports its own, so that no image is built again for that. */
function architecturesOf(
  { states, settled }: PoolDecision,
  before: MachineConfigPoolStatus | undefined,
): Pick<MachineConfigPoolStatus, 'architectures'> {
  const reported = [...states.flatMap(({ architecture }) => architecture ?? []), ...settled.architectures];
  const built = architecturesToBuild(reported);
  const architectures = built.length === 0 ? before?.architectures : built;
  return architectures === undefined ? {} : { architectures };
}

/** Architectures in Go's words that operating-system images are made for (MCO builds for the same). */
const COMMON: ReadonlySet<string> = new Set(['amd64', 'arm64', 'ppc64le', 's390x']);
/** As the status of a MachineOSBuild limits a word and their number (api/machine-os-build.ts). */
const WORD = /^[a-z0-9_]{1,64}$/;
const MOST = 10;

/**
 * What a pool's image is built for. A kubelet's report is the word of one node: where others report a common
 * architecture, one that reports anything else doesn't decide what is built, and its own daemon reports that the image
 * has none for it.
 *
 * @param reported by nodes, as GOARCH, in any order.
 * @returns each once, sorted; the less common ones only where no node reports a common one.
 */
function architecturesToBuild(reported: Iterable<string>): string[] {
  const words = [...new Set(reported)].filter((word) => WORD.test(word)).sort(byCodeUnits);
  const common = words.filter((word) => COMMON.has(word));
  return (common.length > 0 ? common : words).slice(0, MOST);
}

function configurationOf({ pool, observation }: PoolStatusInputs): PoolConfiguration | undefined {
  const { target } = observation;
  if (target.kind !== 'rolled-back') return pool.spec.configuration;
  const { config } = target.target;
  return pool.status?.configuration?.name === config ? pool.status.configuration : { name: config };
}

/** As status.configuration: the stream of what every node of the pool was last updated to. */
function streamOf(
  { streamOfConfig }: PoolStatusInputs,
  configuration: PoolConfiguration | undefined,
): MachineConfigPoolStatus['osImageStream'] {
  const name = streamOfConfig?.(configuration?.name ?? '');
  return name === undefined ? undefined : { name };
}

function isResolved(target: PoolTarget): boolean {
  return target.kind === 'standard' || target.kind === 'layered' || target.kind === 'rolled-back';
}

const BUILD_CONDITIONS = ['BuildPending', 'Building', 'BuildSuccess', 'BuildFailed'] as const;

function conditionsOf(
  inputs: PoolStatusInputs,
  done: boolean,
  updated: number,
  now: number,
): readonly Condition[] & Condition[] {
  const { target, decided } = inputs.observation;
  const kept = (inputs.pool.status?.conditions ?? []).filter(
    // Switching layering off leaves no trace of it.
    ({ type }) => target.kind !== 'standard' || !BUILD_CONDITIONS.some((build) => build === type),
  );
  const verdicts: readonly (readonly [PoolConditionType, Verdict])[] = [
    ['Updated', updatedVerdict(inputs, done)],
    ['Updating', updatingVerdict(inputs, done, updated)],
    ['NodeDegraded', nodeDegradedVerdict(inputs.decision.states)],
    ['Degraded', degradedVerdict(inputs)],
    ...buildVerdicts(target),
    ...occasionalVerdicts(inputs, now),
  ];
  const current = verdicts.reduce<Condition[]>(
    (conditions, [type, verdict]) => [...setCondition(conditions, { type, ...verdict }, new Date(now))],
    kept,
  );
  const progress = {
    renderingDue: decided?.renderingDue ?? false,
    stepsFail: (inputs.failing ?? []).length > 0,
    nodesFailed: inputs.decision.states.some(hasFailed),
  };
  const generation = observedGeneration(inputs);
  return observedAt(
    setReadiness(current, poolReadiness(current, progress), generation, new Date(now)),
    generation,
  );
}

/** Conditions that a pool gets once there is something to report. From then on it has them, and they say when not. */
function occasionalVerdicts(
  inputs: PoolStatusInputs,
  now: number,
): (readonly [PoolConditionType, Verdict])[] {
  const { pool, decision } = inputs;
  const verdicts: readonly (readonly [PoolConditionType, Verdict | undefined, otherwise: string])[] = [
    ['UpdatesHeld', heldUpdatesVerdict(decision), 'NothingHeld'],
    ['ChangeTried', triedVerdict(inputs), 'NothingTried'],
    ['SettingsWarning', settingsVerdict(inputs.observation.settings), 'AsExpected'],
    ['NewNodesWaiting', newNodesVerdict(decision.startup, now), 'NoNewNodes'],
  ];
  const had = new Set<string>(pool.status?.conditions?.map(({ type }) => type));
  return verdicts.flatMap(([type, verdict, reason]): (readonly [PoolConditionType, Verdict])[] => {
    if (verdict !== undefined) return [[type, verdict]];
    return had.has(type) ? [[type, { status: 'False', reason, message: '' }]] : [];
  });
}

/** Its failure is about the target that it has now. */
function hasFailed(node: NodeState): boolean {
  return (
    isDegraded(node) && node.update.progress.kind === 'degraded' && node.update.progress.ofAnother !== true
  );
}

/** Exactly one of the build conditions is True in a layered pool; a pool that never was layered has none. */
function buildVerdicts(target: PoolTarget): (readonly [PoolConditionType, Verdict])[] {
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
    case 'rolled-back':
      return buildState(target.ownTarget);
    case 'layered':
      return { type: 'BuildSuccess', message: `MachineOSBuild ${target.build}: ${target.target.image}` };
  }
}

/**
 * ms between two writes that change nothing but counts: in a rollout these change with every node. The more nodes a
 * pool has, the less each of them moves its counts.
 */
const COUNTS_INTERVAL = { atLeast: 2_000, perNode: 40, atMost: 10_000 };

/**
 * @param before the current status.
 * @param after the status to write.
 * @param writtenAt when this process last wrote it, in ms since the epoch.
 * @param now ms since the epoch.
 * @returns ms to wait before the new one is written; 0 where there is nothing to wait for. What an admin or a tool
 *   waits for (a condition that changes, another configuration) is reported at once.
 */
export function statusWait(
  before: MachineConfigPoolStatus | undefined,
  after: MachineConfigPoolStatus,
  writtenAt: number | undefined,
  now: number,
): number {
  if (writtenAt === undefined || isDeepStrictEqual(before, after)) return 0;
  const isNews = !isDeepStrictEqual(verdictsOf(before), verdictsOf(after));
  // A clock that was set back delays nothing.
  return isNews || now < writtenAt ? 0 : Math.max(0, writtenAt + countsInterval(after) - now);
}

function countsInterval({ machineCount = 0 }: MachineConfigPoolStatus): number {
  const { atLeast, perNode, atMost } = COUNTS_INTERVAL;
  return Math.min(Math.max(atLeast, perNode * machineCount), atMost);
}

function verdictsOf(status: MachineConfigPoolStatus | undefined): readonly unknown[] {
  const {
    configuration,
    observedGeneration,
    bootImage,
    rollbackDeadline,
    heldNodes,
    updatingNodes,
    conditions = [],
  } = status ?? {};
  const verdicts = conditions.map(({ type, status: is, reason }) => [type, is, reason]);
  // Which nodes are at work changes with every node; that none is any more is the end of a rollout.
  const isAtWork = updatingNodes !== undefined;
  return [
    configuration?.name,
    observedGeneration,
    bootImage,
    rollbackDeadline,
    heldNodes,
    isAtWork,
    verdicts,
  ];
}

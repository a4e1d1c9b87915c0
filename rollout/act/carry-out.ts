import type { Logger } from 'pino';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isAlreadyExists } from '../../cluster/api-client.ts';
import { aboutChange, type EventRecorder } from '../../cluster/events.ts';
import type { Caches } from '../caches.ts';
import { inParallel } from '../in-parallel.ts';
import type { PoolDecision } from '../pools/decide-pool.ts';
import type { Hooks } from '../pools/hooks.ts';
import type { NodeStep } from '../pools/node-step.ts';
import {
  type Assignment,
  assignmentPatch,
  poolLabels,
  poolLabelsPatch,
  targetOf,
} from '../pools/node-target.ts';
import type { ObservedNode, PoolObservation } from '../pools/pool-observation.ts';
import type { Lanes, Urgency } from './lanes.ts';
import type { NodeWork } from './node-work.ts';
import { admitNode } from './node-writes.ts';

export interface CarryOutParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly work: NodeWork;
  /** Shared by all pools. */
  readonly lanes: Lanes;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** What carrying out a decision found, by node. */
export interface Findings {
  readonly notes: Map<string, string>;
  readonly stuckDrains: Map<string, string>;
  readonly overdueHooks: Map<string, string>;
  /** ms after which the next pass is needed; undefined: not for this node. */
  readonly waits: (number | undefined)[];
}

export function noFindings(): Findings {
  return { notes: new Map(), stuckDrains: new Map(), overdueHooks: new Map(), waits: [] };
}

/** Writes on nodes that are under way or wait for their lane at the same time within one pool. */
export const PARALLEL_NODES = 16;
/** Nodes of one pool that are started with at the same time: no pool takes all of the lanes. */
const PARALLEL_STARTS = 2;
/**
 * Writes on nodes of all pools together (lanes.ts). With 32 and none reserved, what started kept the API server busy: a node
 * that had finished its update waited two to three times as long, while a rollout of 10,000 nodes was a tenth faster
 * (bench/rollout.ts).
 */
export const ALL_LANES = { width: 12, reserved: 6 };

/**
 * For how long one pass starts with further nodes, once it has started with one. A node that finishes its update during a
 * pass is noticed by the next one; what a pass costs besides grows with the nodes that it reads.
 */
const STARTS_WITHIN = { atLeastMs: 50, msPerNode: 0.1 };

/**
 * Carries out what was decided about a pool's nodes.
 *
 * @param findings is added to, so that it is complete even if a write fails.
 * @throws ApiError or AggregateError when some write failed; everything else has been done all the same.
 */
export async function carryOut(
  parts: CarryOutParts,
  observation: PoolObservation,
  decision: PoolDecision,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  await createMissing(parts, decision, signal);
  const { underWay, toStart, more } = nodeTasks(observation.nodes, decision);
  const carry = async (task: NodeTask) => {
    if (isOver(parts, task)) return;
    await assign(parts, observation.pool, task, signal);
    await carryOutStep(parts, task, observation.settings.hooks, findings, signal);
  };
  const ending = inParallel(underWay, PARALLEL_NODES, (task) =>
    parts.lanes.run(urgencyOf(task), () => carry(task)),
  );
  const startsFor = Math.max(STARTS_WITHIN.atLeastMs, STARTS_WITHIN.msPerNode * observation.nodes.length);
  const starting = startWithin(parts, toStart, startsFor, carry);
  const [ended, started] = await Promise.allSettled([ending, starting]);
  if (more || started.status === 'rejected' || started.value > 0) findings.waits.push(0);
  throwAll([ended, started]);
  await inParallel(decision.startup.admit, PARALLEL_NODES, (name) => admit(parts, name, signal));
}

/**
 * Its update was finished after the pass had observed it (finish-controller.ts). The next pass decides about it; what was
 * decided here could take its lease once more.
 */
function isOver({ caches }: Pick<CarryOutParts, 'caches'>, { observed }: NodeTask): boolean {
  const { metadata, spec } = observed.machineConfigNode;
  return spec.grant !== undefined && caches.machineConfigNodes.get(metadata.name)?.spec.grant === undefined;
}

/** @param limit ms. @returns how many of the nodes are left to the next pass. */
async function startWithin(
  { lanes, now }: Pick<CarryOutParts, 'lanes' | 'now'>,
  tasks: readonly NodeTask[],
  limit: number,
  carry: (task: NodeTask) => Promise<void>,
): Promise<number> {
  const begunAt = now();
  let started = 0;
  await inParallel(tasks, PARALLEL_STARTS, (task) =>
    lanes.run(urgencyOf(task), async () => {
      if (started > 0 && now() - begunAt > limit) return;
      started += 1;
      await carry(task);
    }),
  );
  return tasks.length - started;
}

function urgencyOf({ step }: NodeTask): Urgency {
  if (step === undefined) return 'assigns';
  return step.kind === 'take' || step.kind === 'drain' ? 'takes' : 'ends';
}

/** @throws the errors of both, as inParallel does those of one. */
function throwAll(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const reasons: unknown[] = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  if (reasons.length === 1) throw reasons[0];
  if (reasons.length > 1) throw new AggregateError(reasons, reasons.map(String).join('; '));
}

/** A step that was just taken may have changed the Node. */
async function admit(parts: CarryOutParts, name: string, signal: AbortSignal): Promise<void> {
  const { caches } = parts;
  const [node, machineConfigNode] = [caches.nodes.get(name), caches.machineConfigNodes.get(name)];
  if (node === undefined || machineConfigNode === undefined) return;
  const { config, image } = targetOf(machineConfigNode.spec);
  await admitNode({ ...parts, ...aboutChange(parts, config) }, node, image ?? config, signal);
}

async function createMissing(
  { client, caches }: CarryOutParts,
  { create }: PoolDecision,
  signal: AbortSignal,
): Promise<void> {
  await inParallel(create, PARALLEL_NODES, async ({ node, spec }) => {
    const { name, uid } = node.metadata;
    // Deleted with its node, by the garbage collector.
    const ownerReferences = uid === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name, uid }];
    const type = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' };
    const labels = poolLabels(spec.pool.name);
    const object = { ...type, metadata: { name, labels, ownerReferences }, spec };
    try {
      caches.machineConfigNodes.remember(await client.create(MachineConfigNodes, object, { signal }));
    } catch (error) {
      // The cache is behind; the next pass reads the object.
      if (!isAlreadyExists(error)) throw error;
    }
  });
}

async function assign(
  parts: CarryOutParts,
  pool: MachineConfigPool,
  { observed: { machineConfigNode }, patch }: NodeTask,
  signal: AbortSignal,
): Promise<void> {
  if (patch === undefined) return;
  const { client, caches } = parts;
  const { name, resourceVersion } = machineConfigNode.metadata;
  const { labels, spec } = patch;
  const body = { metadata: { resourceVersion, ...present({ labels }) }, ...present({ spec }) };
  const patched = await client.patch(MachineConfigNodes, name, { type: 'merge', body }, { signal });
  caches.machineConfigNodes.remember(patched);
  if (spec === undefined) return;
  const target = targetOf(patched.spec);
  const { log } = aboutChange(parts, target.config);
  log.info({ node: name, ...target, pool: pool.metadata.name }, 'node has a target');
}

async function carryOutStep(
  { caches, work }: CarryOutParts,
  { observed: { node }, step }: NodeTask,
  hooks: Hooks,
  { notes, stuckDrains, overdueHooks, waits }: Findings,
  signal: AbortSignal,
): Promise<void> {
  const { name } = node.metadata;
  const machineConfigNode = caches.machineConfigNodes.get(name);
  if (step === undefined || machineConfigNode === undefined) return;
  const onlyNode = caches.nodes.size() === 1;
  const piece = { node, machineConfigNode, onlyNode, hooks };
  const report = await work.carryOut(step, piece, signal);
  if (report.note !== undefined) {
    notes.set(name, report.note);
    if (report.drainIsStuck === true) stuckDrains.set(name, report.note);
    if (report.hooksAreOverdue === true) overdueHooks.set(name, report.note);
  }
  waits.push(report.lookAgainAfter);
}

/** Merge patches of a MachineConfigNode's labels and spec; each absent where nothing would change. */
interface AssignmentPatch {
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** What a decision asks to be written about one node: its target first, then its step. */
export interface NodeTask {
  readonly observed: ObservedNode & { readonly machineConfigNode: MachineConfigNode };
  /** Merge patch of the MachineConfigNode. */
  readonly patch: AssignmentPatch | undefined;
  readonly step: NodeStep | undefined;
}

/**
 * Nodes that one pass over a pool starts with (assigns a target or takes), at least, and as a share of the nodes it reads.
 * A pass that wrote to every node of a large pool would delay the nodes that finish in the meantime, and those that wait
 * for their proof; with a share, the cost of all passes grows linearly with the nodes.
 */
const STARTED = { atLeast: 16, share: 1 / 16 };

/**
 * Orders what a decision asks for: first the work that is under way on nodes, so that it ends, then nodes to take, then
 * targets to assign.
 *
 * @returns the tasks of one pass, and whether some are left to the next in any case.
 */
export function nodeTasks(
  nodes: readonly ObservedNode[],
  { assign, steps }: Pick<PoolDecision, 'assign' | 'steps'>,
): Readonly<Record<'underWay' | 'toStart', readonly NodeTask[]>> & { readonly more: boolean } {
  const underWay: NodeTask[] = [];
  const taken: NodeTask[] = [];
  const assigned: NodeTask[] = [];
  for (const observed of nodes) {
    const { machineConfigNode } = observed;
    const { name } = observed.node.metadata;
    if (machineConfigNode === undefined) continue;
    const assignment = assign.get(name);
    const patch = assignment === undefined ? undefined : patchOf(machineConfigNode, assignment);
    const task = { observed: { ...observed, machineConfigNode }, patch, step: steps.get(name) };
    if (task.step?.kind === 'take') taken.push(task);
    else if (task.step !== undefined) underWay.push(task);
    else if (patch !== undefined) assigned.push(task);
  }
  const all = [...taken, ...assigned];
  const toStart = all.slice(0, Math.max(STARTED.atLeast, nodes.length * STARTED.share));
  return { underWay, toStart, more: toStart.length < all.length };
}

/** @returns what assigns a node to its pool and target; undefined when nothing would change. */
function patchOf(
  { metadata, spec: current }: MachineConfigNode,
  assignment: Assignment,
): AssignmentPatch | undefined {
  const labels = poolLabelsPatch(metadata, assignment.pool);
  const spec = assignmentPatch(current, assignment);
  return labels === undefined && spec === undefined ? undefined : present({ labels, spec });
}

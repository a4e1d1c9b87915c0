import type { Logger } from 'pino';
import type { Node } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isAlreadyExists } from '../../cluster/api-client.ts';
import { aboutChange, type EventRecorder } from '../../cluster/events.ts';
import type { FailingSteps } from '../../cluster/failing-steps.ts';
import type { Caches } from '../caches.ts';
import { inParallel } from '../in-parallel.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import type { PoolDecision } from '../pools/decide-pool.ts';
import type { Hooks } from '../pools/hooks.ts';
import type { NodeStep } from '../pools/node-step.ts';
import {
  type Assignment,
  assignmentPatch,
  nodeTargetOf,
  poolLabels,
  poolLabelsPatch,
} from '../pools/node-target.ts';
import type { ObservedNode, PoolObservation } from '../pools/pool-observation.ts';
import { type Attempts, attempt, doingOnNode, type NodeTaskKind, noteOfFailure } from './attempt.ts';
import type { Lanes, Urgency } from './lanes.ts';
import type { NodeWork } from './node-work.ts';
import { admitNode } from './node-writes.ts';

export interface CarryOutParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly work: NodeWork;
  readonly leases: Pick<NodeLeases, 'isOurs'>;
  readonly options: Pick<RolloutOptions, 'leases'>;
  /** Shared by all pools. */
  readonly lanes: Lanes;
  readonly failing: FailingSteps;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** What carrying out a decision found, by node. */
export interface Findings extends Attempts {
  readonly notes: Map<string, string>;
  readonly stuckDrains: Map<string, string>;
  readonly overdueHooks: Map<string, string>;
  /** What the pass before found: a drain is stuck, too, while the step that would look at it fails. */
  readonly before: Pick<Findings, 'stuckDrains' | 'overdueHooks'>;
}

/** @param before of the last pass; absent: there was none. */
export function noFindings(before?: Findings['before']): Findings {
  const found = { notes: new Map(), stuckDrains: new Map(), overdueHooks: new Map() };
  const { stuckDrains = new Map(), overdueHooks = new Map() } = before ?? {};
  return { ...found, waits: [], errors: [], before: { stuckDrains, overdueHooks } };
}

/** Writes on nodes that are under way or wait for their lane at the same time within one pool. */
export const PARALLEL_NODES = 16;
/** Nodes of one pool that are started with at the same time: no pool takes all of the lanes. */
const PARALLEL_STARTS = 2;
/**
 * Writes on nodes of all pools together (lanes.ts). With 32 and none reserved, what started kept the API server busy: a
 * node that had finished its update waited two to three times as long, while a rollout of 10,000 nodes was a tenth
 * faster (bench/rollout.ts).
 */
export const ALL_LANES = { width: 12, reserved: 6 };

/**
 * For how long one pass starts with further nodes, once it has started with one. A node that finishes its update during
 * a pass is noticed by the next one; what a pass costs besides grows with the nodes that it reads.
 */
const STARTS_WITHIN = { atLeastMs: 50, msPerNode: 0.1 };

/** One pass over a pool. */
interface Pass extends CarryOutParts {
  readonly findings: Findings;
  readonly signal: AbortSignal;
}

/**
 * Carries out what was decided about a pool's nodes. What fails on one of them is taken down (`parts.failing`) and
 * added to the findings; everything else is done all the same.
 *
 * @param findings is added to.
 * @throws the signal's reason.
 */
export async function carryOut(
  parts: CarryOutParts,
  observation: PoolObservation,
  decision: PoolDecision,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  const pass = { ...parts, findings, signal };
  await createMissing(pass, decision);
  const { underWay, toStart, more } = nodeTasks(observation.nodes, decision);
  const carry = async (task: NodeTask) => {
    if (isOver(parts, task)) return;
    if (!(await assign(pass, observation.pool, task))) return;
    await carryOutStep(pass, task, observation.settings.hooks);
  };
  const ending = inParallel(underWay, PARALLEL_NODES, (task) =>
    parts.lanes.run(urgencyOf(task), () => carry(task)),
  );
  const startsFor = Math.max(STARTS_WITHIN.atLeastMs, STARTS_WITHIN.msPerNode * observation.nodes.length);
  const starting = startWithin(parts, toStart, startsFor, carry);
  const [, left] = await Promise.all([ending, starting]);
  if (more || left > 0) findings.waits.push(0);
  await inParallel(decision.startup.admit, PARALLEL_NODES, (name) => admit(pass, name));
}

/** Takes one step on a node. @returns whether it was taken. */
async function onNode(
  pass: Pass,
  node: Node,
  kind: NodeTaskKind,
  work: () => Promise<void>,
): Promise<boolean> {
  const { leases, options, findings, signal } = pass;
  const { name } = node.metadata;
  const step = { object: node, doing: doingOnNode(kind) };
  const failed = await attempt(pass, step, findings, signal, work);
  if (failed === undefined) return true;
  const note = noteOfFailure(failed, leases.isOurs(name) ? options.leases.holder : undefined);
  if (note !== undefined) findings.notes.set(name, note);
  for (const found of ['stuckDrains', 'overdueHooks'] as const) {
    const still = findings.before[found].get(name);
    if (still !== undefined) findings[found].set(name, still);
  }
  return false;
}

/**
 * Its update was finished after the pass had observed it (finish-controller.ts). The next pass decides about it; what
 * was decided here could take its lease once more.
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

/** A step that was just taken may have changed the Node. */
async function admit(pass: Pass, name: string): Promise<void> {
  const { caches, signal } = pass;
  const [node, machineConfigNode] = [caches.nodes.get(name), caches.machineConfigNodes.get(name)];
  if (node === undefined || machineConfigNode === undefined) return;
  const { config, image } = nodeTargetOf(machineConfigNode.spec);
  await onNode(pass, node, 'admit', () =>
    admitNode({ ...pass, ...aboutChange(pass, config) }, node, image ?? config, signal),
  );
}

async function createMissing(pass: Pass, { create }: PoolDecision): Promise<void> {
  const { client, caches, signal } = pass;
  await inParallel(create, PARALLEL_NODES, async ({ node, spec }) => {
    const { name, uid } = node.metadata;
    // Deleted with its node, by the garbage collector.
    const ownerReferences = uid === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name, uid }];
    const type = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' };
    const labels = poolLabels(spec.pool.name);
    const object = { ...type, metadata: { name, labels, ownerReferences }, spec };
    await onNode(pass, node, 'create', async () => {
      try {
        caches.machineConfigNodes.remember(await client.create(MachineConfigNodes, object, { signal }));
      } catch (error) {
        // The cache is behind; the next pass reads the object.
        if (!isAlreadyExists(error)) throw error;
      }
    });
  });
}

/** @returns whether the node has the target that the decision is about. */
async function assign(
  pass: Pass,
  pool: MachineConfigPool,
  { observed: { node, machineConfigNode }, patch }: NodeTask,
): Promise<boolean> {
  if (patch === undefined) return true;
  const { client, caches, signal } = pass;
  const { name, resourceVersion } = machineConfigNode.metadata;
  const { labels, spec } = patch;
  const body = { metadata: { resourceVersion, ...present({ labels }) }, ...present({ spec }) };
  return onNode(pass, node, 'assign', async () => {
    const patched = await client.patch(MachineConfigNodes, name, { type: 'merge', body }, { signal });
    caches.machineConfigNodes.remember(patched);
    if (spec === undefined) return;
    const target = nodeTargetOf(patched.spec);
    const { log } = aboutChange(pass, target.config);
    log.info({ node: name, ...target, pool: pool.metadata.name }, 'node has a target');
  });
}

async function carryOutStep(pass: Pass, { observed: { node }, step }: NodeTask, hooks: Hooks): Promise<void> {
  const { caches, work, findings, signal } = pass;
  const { name } = node.metadata;
  const machineConfigNode = caches.machineConfigNodes.get(name);
  if (step === undefined || machineConfigNode === undefined) return;
  const onlyNode = caches.nodes.size() === 1;
  const piece = { node, machineConfigNode, onlyNode, hooks };
  await onNode(pass, node, step.kind, async () => {
    const report = await work.carryOut(step, piece, signal);
    if (report.note !== undefined) {
      findings.notes.set(name, report.note);
      if (report.drainIsStuck === true) findings.stuckDrains.set(name, report.note);
      if (report.hooksAreOverdue === true) findings.overdueHooks.set(name, report.note);
    }
    findings.waits.push(report.lookAgainAfter);
  });
}

/**
 * @returns what a decision asks to be done on nodes, by node: what fails and is not among it is no longer to be done.
 */
export function wantedOnNodes({
  create,
  assign: targets,
  steps,
  startup,
}: Pick<PoolDecision, 'create' | 'assign' | 'steps' | 'startup'>): ReadonlyMap<string, ReadonlySet<string>> {
  const wanted = new Map<string, Set<string>>();
  const want = (name: string, kind: NodeTaskKind) =>
    void wanted.set(name, (wanted.get(name) ?? new Set()).add(doingOnNode(kind)));
  for (const { node } of create) want(node.metadata.name, 'create');
  for (const name of targets.keys()) want(name, 'assign');
  for (const [name, { kind }] of steps) want(name, kind);
  for (const name of startup.admit) want(name, 'admit');
  return wanted;
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
 * Nodes that one pass over a pool starts with (assigns a target or takes), at least, and as a share of the nodes it
 * reads. A pass that wrote to every node of a large pool would delay the nodes that finish in the meantime, and those
 * that wait for their proof; with a share, the cost of all passes grows linearly with the nodes.
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

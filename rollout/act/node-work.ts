import type { Logger } from 'pino';
import { isDisruptive } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { Grant, MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { type ApiClient, isConflict } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { aboutChange, type Reporters } from '../../cluster/events.ts';
import { isNotDone } from '../../cluster/failure.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import type { Caches } from '../caches.ts';
import { clusterApiMachineOf, type MachineLookup } from '../node-claims.ts';
import { leaseNameOf, type NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import { awayOf } from '../pools/claims.ts';
import { type HookPhase, type Hooks, hookRequestOn } from '../pools/hooks.ts';
import { isControlPlane, isNewNode } from '../pools/new-node.ts';
import { isReady } from '../pools/node-availability.ts';
import type { NodeStep } from '../pools/node-step.ts';
import { workOn } from '../pools/work.ts';
import type { RolloutMetrics } from '../reports/metrics.ts';
import { drainSpan } from '../reports/spans.ts';
import { disruptionBlocked } from './disruption-annotations.ts';
import { type CordonReport, withCordon, withoutCordon } from './drain-conditions.ts';
import { drainRetryAfter, drainStep, formatDrain } from './drain-step.ts';
import type { MachineRemediation } from './machine-remediation.ts';
import { awaitHooks } from './node-hooks.ts';
import { patchMachineConfigNode, patchNode, unblockDisruption, writeStatus } from './node-writes.ts';

/** The result of a step. */
export interface StepReport {
  /** What the node waits for, if an admin should know. */
  readonly note?: string;
  /** The note is about a drain that exceeds --drain-report-minutes. */
  readonly drainIsStuck?: boolean;
  /** The note is about hooks that exceed --hook-report-minutes. */
  readonly hooksAreOverdue?: boolean;
  /** ms after which the next pass is needed. */
  readonly lookAgainAfter?: number | undefined;
}

/** ms; a step that is being taken need not write anything, so that nothing else tells when it is over. */
const IN_HAND_RETRY = 100;

export interface NodeWorkParts {
  readonly client: ApiClient;
  readonly leases: NodeLeases;
  readonly machines: Pick<MachineLookup, 'isDeleting'>;
  readonly remediation: Pick<MachineRemediation, 'exempt' | 'endExemption'>;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly options: Pick<RolloutOptions, 'leases' | 'drain' | 'reports'>;
  /** Absent in an operator without metrics. */
  readonly metrics: Pick<RolloutMetrics, 'observeDrain'> | undefined;
  readonly tracer: Tracer;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** A node that is worked on: both objects, as fresh as this process has them. */
export interface WorkPiece {
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode;
  /** No other node could take what a drain of this one evicts. */
  readonly onlyNode: boolean;
  /** Those of the node's pool. */
  readonly hooks: Hooks;
}

/**
 * Takes steps on nodes. The order within a step is what makes a kill at any point harmless: the lease comes before the
 * cordon, the cordon before the hooks, the hooks before the drain, the drain before the grant; on the way out the grant
 * goes first, the cordon is lifted under the lease, and the lease goes last. Each of the three alone still says that
 * the node is at work; what the MachineConfigNode's conditions say of the cordon comes after it and goes before it.
 *
 * One step at a time is taken on a node, no matter who decided it.
 */
export class NodeWork {
  readonly #parts: NodeWorkParts;
  /**
   * What was last reported about a node in an event, so that a blocked drain is reported once and not with every pass.
   */
  readonly #reported = new Map<string, string>();
  /**
   * By node: since when no hook holds its drain, in ms since the epoch; a drain that waited for hooks is not stuck for
   * that.
   */
  readonly #drainsSince = new Map<string, number>();
  readonly #inHand = new Set<string>();

  constructor(parts: NodeWorkParts) {
    this.#parts = parts;
  }

  /**
   * @returns only that it has to be looked at again soon, where another step is being taken on the node.
   * @throws ApiError on a conflict or when the API server can't be reached: the caller observes again and decides
   *   again.
   */
  async carryOut(step: NodeStep, piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const { name } = piece.node.metadata;
    if (this.#inHand.has(name)) return { lookAgainAfter: IN_HAND_RETRY };
    if (step.kind === 'take' && step.level === 'Disrupt' && this.#isControlPlaneBusy(piece.node))
      return { note: 'waits for another control-plane node', lookAgainAfter: IN_HAND_RETRY };
    this.#inHand.add(name);
    try {
      return await this.#carryOut(step, piece, signal);
    } finally {
      this.#inHand.delete(name);
    }
  }

  async #carryOut(step: NodeStep, piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const { name } = piece.node.metadata;
    switch (step.kind) {
      case 'none':
        return {};
      case 'take':
        return this.#take(piece, step.level, signal);
      case 'drain':
        return this.#drain(piece, signal);
      case 'keep-lease':
        return this.#keepLease(piece, signal);
      case 'finish':
        return this.#finish(piece, signal);
      case 'back-out':
        this.#reporters(piece).log.info({ node: name, why: step.why }, 'backing out of a node');
        return this.#returnToService(piece, step.why, signal);
      case 'let-go':
        this.#reporters(piece).log.warn(
          { node: name, why: step.why },
          'releasing a node that stays cordoned',
        );
        await this.#withdraw(piece, signal);
        await unblockDisruption(this.#parts, piece.node, signal);
        await this.#parts.remediation.endExemption(clusterApiMachineOf(piece.node), signal);
        await this.#parts.leases.release(name, signal);
        return {};
      case 'suspend':
        this.#reporters(piece).log.warn({ node: name, why: step.why }, 'suspending work on a node');
        await this.#withdraw(piece, signal);
        return { note: step.why };
    }
  }

  async #take(piece: WorkPiece, level: Grant['level'], signal: AbortSignal): Promise<StepReport> {
    // The next pass knows it and chooses another node.
    if (await this.#parts.machines.isDeleting(piece.node, signal))
      return { note: 'skipped: its Machine is being deleted', lookAgainAfter: 0 };
    const refused = await this.#keepLease(piece, signal);
    if (refused.note !== undefined) return refused;
    switch (level) {
      case 'Live':
        await this.#orRelease(piece, () => this.#grant(piece, 'Live', signal), signal);
        return {};
      case 'Disrupt': {
        const node = await this.#orRelease(piece, () => this.#cordon(piece, signal), signal);
        return this.#empty({ ...piece, node }, signal);
      }
    }
  }

  /**
   * Passes over two pools may each have chosen a control-plane node at the same time, and no gate of theirs has seen
   * the other one. What is at work when a node is taken is in the caches or in hand.
   */
  #isControlPlaneBusy(node: Node): boolean {
    if (!isControlPlane(node)) return false;
    const { nodes, machineConfigNodes } = this.#parts.caches;
    return nodes.list().some((other) => {
      const { name } = other.metadata;
      if (name === node.metadata.name || !isControlPlane(other)) return false;
      // The rollout let it go, and whether the others still have a quorum is for that gate.
      if (awayOf({ node: other })?.kind === 'switched-off') return false;
      const spec = machineConfigNodes.get(name)?.spec;
      const work = spec === undefined ? undefined : workOn(other, spec);
      return this.#inHand.has(name) || work?.cordon !== undefined || work?.grant === 'Disrupt';
    });
  }

  /**
   * Takes the first step under the lease. A node on which nothing can begin is nobody's meanwhile; where it is unknown
   * whether it has begun, the lease is kept.
   */
  async #orRelease<T>(piece: WorkPiece, begin: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { name, annotations: set } = piece.node.metadata;
    try {
      return await begin();
    } catch (error) {
      const isUntouched =
        set?.[annotations.cordonedByShale] === undefined && piece.machineConfigNode.spec.grant === undefined;
      if (isUntouched && isNotDone(error) && !isConflict(error))
        await this.#parts.leases.release(name, signal).catch((second: unknown) => {
          this.#reporters(piece).log.warn({ node: name, err: second }, 'could not release the lease');
        });
      throw error;
    }
  }

  async #drain(piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const refused = await this.#keepLease(piece, signal);
    if (refused.note !== undefined) return refused;
    // Where somebody has uncordoned it, pods would come as fast as they are evicted, or be there when it reboots.
    return this.#empty({ ...piece, node: await this.#cordon(piece, signal) }, signal);
  }

  async #finish(piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const { name, annotations: set } = piece.node.metadata;
    // A node that was not cordoned was not disrupted.
    if (set?.[annotations.cordonedByShale] !== undefined && piece.hooks.after.length > 0) {
      const refused = await this.#keepLease(piece, signal);
      const waits = refused.note === undefined ? await this.#awaitHooks(piece, 'after', signal) : refused;
      if (waits !== undefined) return waits;
    }
    const report = await this.#returnToService(piece, `it runs ${configOf(piece)}`, signal);
    if (report.note === undefined)
      this.#reporters(piece).log.info({ node: name, config: configOf(piece) }, 'node is updated');
    return report;
  }

  /** A new node runs no pod that a hook could be about. @returns undefined once nothing is to be waited for. */
  async #awaitHooks(
    piece: WorkPiece,
    phase: HookPhase,
    signal: AbortSignal,
  ): Promise<StepReport | undefined> {
    const { node, hooks } = piece;
    if (hooks[phase].length === 0 || isNewNode(node)) return undefined;
    const parts = { ...this.#parts, ...this.#reporters(piece) };
    const waits = await awaitHooks(parts, node, phase, hooks[phase], signal);
    if (waits === undefined) return undefined;
    const { note, isOverdue, lookAgainAfter } = waits;
    if (isOverdue) this.#warnOnce(piece, 'HooksOverdue', note);
    return { note, hooksAreOverdue: isOverdue, lookAgainAfter };
  }

  #drainSince({ node: { metadata }, hooks }: WorkPiece): number {
    const taken = this.#parts.leases.takenAt(metadata.name);
    if (hooks.before.length === 0) return taken;
    const since = this.#drainsSince.get(metadata.name) ?? this.#parts.now();
    this.#drainsSince.set(metadata.name, since);
    return since;
  }

  /** Evicts pods while the lease is ours and no hook holds the node, and grants once the node is drained. */
  async #empty(piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const waits = await this.#awaitHooks(piece, 'before', signal);
    if (waits !== undefined) return waits;
    const { name } = piece.node.metadata;
    const since = this.#drainSince(piece);
    const actions = piece.machineConfigNode.status?.plan?.actions ?? [];
    // With one node in the cluster nothing could be rescheduled and budgets would block for ever (as MCO).
    const drains = isDisruptive(actions) && !piece.onlyNode;
    if (drains) {
      const { client, options, now } = this.#parts;
      const cordonedAt = this.#parts.leases.takenAt(name);
      const times = { cordonedAt, ...(isReady(piece.node) ? {} : { lostAt: now() }) };
      const progress = await drainStep(client, name, options.drain, signal, times);
      if (progress.kind === 'draining') {
        const elapsed = now() - since;
        const note = formatDrain(progress);
        const drainIsStuck = elapsed > options.drain.reportAfterSeconds * 1000;
        if (drainIsStuck) this.#warnOnce(piece, 'DrainBlocked', note);
        await this.#reportCordon(piece, { drain: progress, isStuck: drainIsStuck }, signal);
        return {
          note,
          drainIsStuck,
          lookAgainAfter: drainRetryAfter(elapsed, options.drain, progress.retryAfterMs),
        };
      }
      const took = { startedAt: since, endedAt: now() };
      this.#parts.metrics?.observeDrain((took.endedAt - took.startedAt) / 1000);
      this.#parts.tracer.record(drainSpan(piece.machineConfigNode, took));
    }
    const drain = { kind: drains ? 'drained' : 'unneeded' } as const;
    await this.#grant(await this.#reportCordon(piece, { drain, isStuck: false }, signal), 'Disrupt', signal);
    return {};
  }

  #reporters(piece: WorkPiece): Reporters {
    return aboutChange(this.#parts, configOf(piece));
  }

  /** @returns the piece with its MachineConfigNode as it is then. */
  async #reportCordon(
    piece: WorkPiece,
    report: Omit<CordonReport, 'why'>,
    signal: AbortSignal,
  ): Promise<WorkPiece> {
    const { options, now } = this.#parts;
    const lease = `${options.leases.namespace}/${leaseNameOf(piece.node.metadata.name)}`;
    const why = `Cordoned by ${options.leases.holder}, which holds the Lease ${lease}, to update the node to ${configOf(piece)}`;
    return writeStatus(
      this.#parts,
      piece,
      (status) => withCordon(status, { ...report, why }, new Date(now())),
      signal,
    );
  }

  async #keepLease(piece: WorkPiece, signal: AbortSignal): Promise<StepReport> {
    const { name } = piece.node.metadata;
    const what = { reason: `update to ${configOf(piece)}`, machine: clusterApiMachineOf(piece.node) };
    const holding = await this.#parts.leases.acquire(name, what, signal);
    switch (holding.by) {
      case 'us':
      case 'nobody':
        return {};
      case 'powered-off':
        return { note: 'skipped: its lease is held for the machine that was switched off' };
      case 'other':
        return { note: `skipped: its lease is held by ${holding.holder}` };
    }
  }

  async #cordon(piece: WorkPiece, signal: AbortSignal): Promise<Node> {
    const { node } = piece;
    const known = node.metadata.annotations?.[annotations.cordonedByShale];
    const isCordoned = known !== undefined && node.spec?.unschedulable === true;
    // Only under a cordon of ours, by which whoever comes after this process finds what has to be given back.
    if (isCordoned) await this.#parts.remediation.exempt(node, signal);
    if (isCordoned && Object.keys(disruptionBlocked(node)).length === 0) return node;
    const mark = known ?? String(node.spec?.unschedulable !== true);
    const cordoned = await patchNode(
      this.#parts,
      piece,
      { cordonedByShale: mark, spec: { unschedulable: true } },
      signal,
    );
    if (isCordoned) return cordoned;
    await this.#parts.remediation.exempt(cordoned, signal);
    const { log, events } = this.#reporters(piece);
    log.info({ node: node.metadata.name }, 'cordoned');
    events.normal(node, 'Cordon', `Cordoned the node to update it to ${configOf(piece)}`);
    return cordoned;
  }

  /**
   * Removes everything of ours from the node: grant, conditions, cordon, lease. A cordon that was left to others, with
   * the lease, is lifted under the lease as well.
   */
  async #returnToService(piece: WorkPiece, why: string, signal: AbortSignal): Promise<StepReport> {
    const { node } = piece;
    const mark = node.metadata.annotations?.[annotations.cordonedByShale];
    if (mark === 'true') {
      const refused = await this.#keepLease(piece, signal);
      if (refused.note !== undefined) return refused;
    }
    await this.#withdraw(piece, signal);
    const givenBack = await settled(this.#parts.remediation.endExemption(clusterApiMachineOf(node), signal));
    const free = await writeStatus(this.#parts, piece, withoutCordon, signal);
    const isBlocked = node.metadata.annotations?.[annotations.disruptionBlocked] !== undefined;
    if (mark !== undefined || isBlocked || hookRequestOn(node) !== undefined) {
      const spec = mark === 'true' ? { unschedulable: null } : {};
      await patchNode(this.#parts, free, { cordonedByShale: null, spec }, signal);
      if (mark === 'true')
        this.#reporters(piece).events.normal(node, 'Uncordon', `Uncordoned the node: ${why}`);
    }
    // The node serves. Its lease stays until the Machine is given back, so that it is tried again.
    if (givenBack.status === 'rejected') throw givenBack.reason;
    await this.#parts.leases.release(node.metadata.name, signal);
    this.#reported.delete(node.metadata.name);
    this.#drainsSince.delete(node.metadata.name);
    return {};
  }

  async #grant(piece: WorkPiece, level: Grant['level'], signal: AbortSignal): Promise<void> {
    const { machineConfigNode } = piece;
    const { configVersion, configImage } = machineConfigNode.spec;
    const grant = {
      level,
      config: configVersion.desired,
      // A merge patch keeps what it doesn't name: an absent image has to be removed explicitly.
      image: configImage?.desiredImage ?? null,
      leaseHolder: this.#parts.options.leases.holder,
    };
    await patchMachineConfigNode(this.#parts, machineConfigNode, { grant }, signal);
    const { name } = machineConfigNode.metadata;
    this.#reporters(piece).log.info(
      { node: name, level, config: grant.config, image: grant.image },
      'granted',
    );
  }

  async #withdraw({ machineConfigNode }: WorkPiece, signal: AbortSignal): Promise<void> {
    if (machineConfigNode.spec.grant === undefined) return;
    await patchMachineConfigNode(this.#parts, machineConfigNode, { grant: null }, signal);
  }

  #warnOnce(piece: WorkPiece, reason: 'DrainBlocked' | 'HooksOverdue', note: string): void {
    const { node } = piece;
    if (this.#reported.get(node.metadata.name) === note) return;
    this.#reported.set(node.metadata.name, note);
    this.#reporters(piece).events.warning(node, reason, `Node ${node.metadata.name} ${note}`);
  }
}

/** @returns when the controller of a node that took one step has to look at it again. */
export function resultOf({ lookAgainAfter }: StepReport): Result {
  return lookAgainAfter === undefined ? done : requeueAfter(lookAgainAfter);
}

async function settled(act: Promise<void>): Promise<PromiseSettledResult<void>> {
  const [result] = await Promise.allSettled([act]);
  return result;
}

function configOf({ machineConfigNode }: WorkPiece): string {
  return machineConfigNode.spec.configVersion.desired;
}

import type { RollbackRequest } from '../../api/annotation-requests.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { done, type Result } from '../../cluster/controller.ts';
import { aboutChange, type Reporters } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { attempt, endAttempts } from '../act/attempt.ts';
import { type CarryOutParts, carryOut, type Findings, noFindings } from '../act/carry-out.ts';
import type { PoolRecorder } from '../act/keep-record.ts';
import { PoolFailures } from '../act/pool-failures.ts';
import type { Caches } from '../caches.ts';
import type { StatusPartOf } from '../node-feature.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import { bootImageLag, newNodesLag } from '../pools/boot-image-lag.ts';
import { decidePool, lookAgainAfter, type PoolDecision, withoutNewTargets } from '../pools/decide-pool.ts';
import { withFailures } from '../pools/failing-steps.ts';
import { overdueNodes } from '../pools/new-nodes.ts';
import { isNew } from '../pools/node-availability.ts';
import { formatPoolTarget, type StatusFindings } from '../pools/pool-conditions.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import { poolStatus, statusWait } from '../pools/pool-status.ts';
import { configOf } from '../pools/pool-target.ts';
import { automaticRequest } from '../pools/rollback.ts';
import type { RolloutMetrics } from '../reports/metrics.ts';
import { rolloutSpan } from '../reports/spans.ts';
import { type ObservedPool, PoolObserver, type PoolObserverParts } from './observe-pool.ts';

export interface PoolControllerParts extends PoolObserverParts, CarryOutParts {
  readonly caches: Caches;
  readonly leases: NodeLeases;
  readonly options: RolloutOptions;
  readonly recorder: PoolRecorder;
  /** What features beside the rollout add to the status of a pool. */
  readonly statusParts: readonly StatusPartOf[];
  /** Absent in an operator without metrics. */
  readonly metrics: RolloutMetrics | undefined;
  readonly tracer: Tracer;
}

/** ms; ten times the cost of a pass over one node. */
const REST_PER_NODE = 0.05;

/**
 * The controller of pools: assigns targets to nodes, leads each through its update and maintains the pool's status.
 *
 * One pass over a pool reads its nodes from the caches, decides everything at once (decide-pool.ts) and writes what has
 * to change. Between passes it remembers only which nodes are settled (membership.ts), and when it wrote last.
 */
export class PoolController {
  readonly #parts: PoolControllerParts;
  readonly #observer: PoolObserver;
  readonly #statusWrittenAt = new Map<string, number>();
  /** By pool: what its last pass found. */
  readonly #found = new Map<string, Findings>();
  readonly #failures: PoolFailures;
  /** By pool: the new nodes that an event was recorded about. */
  readonly #overdue = new Map<string, ReadonlySet<string>>();

  constructor(parts: PoolControllerParts) {
    this.#parts = parts;
    this.#observer = new PoolObserver(parts);
    this.#failures = new PoolFailures(parts);
  }

  /** @throws StepsFailed when something could not be done; everything else has been done all the same. */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { caches, options, metrics, now, recorder } = this.#parts;
    const pool = caches.pools.get(name);
    if (pool === undefined) {
      metrics?.removePool(name);
      this.#statusWrittenAt.delete(name);
      this.#overdue.delete(name);
      this.#found.delete(name);
      this.#failures.forget(name);
      recorder.forget(name);
      return done;
    }
    const findings = noFindings(this.#found.get(name));
    if (!this.#found.has(name)) this.#failures.restore(pool);
    this.#found.set(name, findings);
    const observation = await this.#observe(pool, findings, signal);
    if (observation === undefined) return endAttempts(findings);
    const decision = decidePool(observation, options, now());
    for (const { name: node, architecture } of decision.newlySettled)
      observation.members.settle(node, architecture, observation.moment);
    const hasUnassignedNodes = decision.create.length > 0;
    const step = (doing: string, work: () => Promise<void>) =>
      attempt(this.#parts, { object: pool, doing }, findings, signal, work);
    const unrecorded = await step('recording its targets', async () => {
      findings.waits.push(await recorder.keep({ ...observation, hasUnassignedNodes }, signal));
    });
    const recorded = unrecorded === undefined ? decision : withoutNewTargets(observation, decision);
    await step('keeping its rollback', () => this.#keepRollback(observation, recorded, signal));
    const unended = await step('ending its deadline', () => this.#endDeadline(observation, signal));
    // Somebody may have confirmed the change at that moment.
    const certain = unended === undefined ? recorded : withoutNewTargets(observation, recorded);
    await carryOut(this.#parts, observation, certain, findings, signal);
    this.#failures.forgetUnwanted(name, decision);
    metrics?.setPool(name, decision.states, decision.settled.nodes, findings.stuckDrains.size);
    metrics?.setNewNodes(name, decision.startup, decision.at);
    metrics?.setUpdatesHeld(name, decision.startWaits);
    metrics?.setOverdueHooks(name, findings.overdueHooks.size);
    this.#reportOverdue(observation, decision);
    await step('writing its status', async () => {
      const wait = await this.#writeStatus(observation, decision, findings, signal);
      if (wait > 0) findings.waits.push(wait);
    });
    await this.#failures.mark(name, signal);
    findings.waits.push(
      lookAgainAfter(decision, observation.settings, options.leases),
      rollbackWait(observation, decision),
      deadlineWait(observation, decision),
    );
    return { ...endAttempts(findings), restMs: restAfterPass(observation.nodes.length) };
  }

  /** @returns undefined where the pool's nodes can't be read; its status says so then, beside what it said before. */
  async #observe(
    pool: MachineConfigPool,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<ObservedPool | undefined> {
    const { client, caches, now } = this.#parts;
    const { name } = pool.metadata;
    let observed: ObservedPool | undefined;
    await attempt(this.#parts, { object: pool, doing: 'reading its nodes' }, findings, signal, async () => {
      observed = await this.#observer.observe(pool, signal);
    });
    const failing = this.#failures.of(name);
    if (observed !== undefined || failing.length === 0) return observed;
    await attempt(this.#parts, { object: pool, doing: 'writing its status' }, findings, signal, async () => {
      const current = caches.pools.get(name) ?? pool;
      const compute = (of: MachineConfigPool) => withFailures(of, failing, now());
      caches.pools.remember(await updateStatus(client, MachineConfigPools, current, compute, { signal }));
    });
    return undefined;
  }

  /** Maintains the annotation that holds a pool at an earlier target. */
  async #keepRollback(
    { pool, settings, rollback: { ownTarget, state } }: ObservedPool,
    { rollbackTo, halted = '' }: PoolDecision,
    signal: AbortSignal,
  ): Promise<void> {
    const events = (config: string | undefined) => this.#reporters(pool, config).events;
    const write = (request: RollbackRequest | null) =>
      this.#annotate(pool, { [annotations.rollback]: request && JSON.stringify(request) }, signal);
    if (rollbackTo !== undefined) {
      const request = { ...rollbackTo, reason: halted };
      await write(automaticRequest(request, ownTarget, new Date(this.#parts.now())));
      const message = `Rolling back to ${request.image ?? request.config}: ${halted}`;
      events(request.config).warning(pool, 'RollingBack', message);
    } else if (settings.rollback === undefined) {
      return;
    } else if (state.kind === 'over') {
      await write(null);
      events(undefined).normal(pool, 'RollbackOver', `The rollback has ended: ${state.why}`);
    } else if (state.kind === 'rolled-back' && state.from !== undefined) {
      const { from, waitsUntil, target } = state;
      await write({ ...settings.rollback, from, ...present({ waitsUntil }) });
      const message = `Rolling back to ${formatPoolTarget(target)}: ${target.why}`;
      events(target.target.config).normal(pool, 'RollingBack', message);
    }
  }

  /** A deadline that has passed becomes a rollback in one patch, so that nobody confirms in between. */
  async #endDeadline(
    { pool, settings, rollback: { state, request, deadline } }: ObservedPool,
    signal: AbortSignal,
  ): Promise<void> {
    if (deadline.kind !== 'passed' || request === undefined) return;
    const ended = { [annotations.rollbackDeadline]: null };
    const { reason } = request;
    if (settings.rollback !== undefined) {
      // Somebody rolled it back before; their request is not the deadline's to end.
      if (state.kind !== 'rolled-back' || state.from !== undefined) return;
      const held = JSON.stringify({ ...settings.rollback, unconfirmed: deadline.request.id });
      await this.#annotate(pool, { ...ended, [annotations.rollback]: held }, signal);
    } else if (state.kind === 'rolled-back') {
      const { from, waitsUntil } = state;
      const held = JSON.stringify({ ...request, ...present({ from, waitsUntil }) });
      await this.#annotate(pool, { ...ended, [annotations.rollback]: held }, signal);
      const { events } = this.#reporters(pool, request.config);
      events.warning(pool, 'RollingBack', `Rolling back to ${formatPoolTarget(state.target)}: ${reason}`);
    } else if (state.kind === 'over') {
      await this.#annotate(pool, ended, signal);
      const { events } = this.#reporters(pool);
      events.normal(pool, 'RollbackOver', `Nothing is rolled back: ${reason}, and ${state.why}`);
    }
  }

  async #annotate(
    { metadata: { name, resourceVersion } }: MachineConfigPool,
    annotated: Readonly<Record<string, string | null>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches } = this.#parts;
    const body = { metadata: { resourceVersion, annotations: annotated } };
    caches.pools.remember(await client.patch(MachineConfigPools, name, { type: 'merge', body }, { signal }));
  }

  /** Once for each node that takes too long. */
  #reportOverdue({ pool, nodes }: PoolObservation, { startup, at }: PoolDecision): void {
    const before = this.#overdue.get(pool.metadata.name);
    const overdue = new Map(overdueNodes(startup, at).map(({ name, why }) => [name, why]));
    this.#overdue.set(pool.metadata.name, new Set(overdue.keys()));
    for (const { node } of nodes) {
      const why = overdue.get(node.metadata.name);
      if (why === undefined || before?.has(node.metadata.name) === true) continue;
      const { events } = this.#reporters(pool);
      const since = node.metadata.creationTimestamp ?? '';
      const message = `No pod is scheduled on the node, which registered at ${since}, because it still has its startup taint: ${why}`;
      events.warning(node, 'NotConfigured', message);
    }
  }

  #traceRollout(
    { pool, target }: PoolObservation,
    statuses: Record<'before' | 'after', MachineConfigPool['status']>,
  ): void {
    const { caches, tracer, now } = this.#parts;
    const rendered = caches.machineConfigs.get(configOf(target) ?? '');
    const renderedAt = Date.parse(rendered?.metadata.creationTimestamp ?? '') || 0;
    const span = rolloutSpan(pool, target, statuses, renderedAt, now());
    if (span !== undefined) tracer.record(span);
  }

  /** @param config what the pool, or the node of it, goes to; what the pool is to have, where nothing else is known. */
  #reporters({ spec }: MachineConfigPool, config = spec.configuration?.name): Reporters {
    return aboutChange(this.#parts, config);
  }

  /**
   * @returns ms after which the status is to be written, where it was written a moment ago; 0: it is as it should be.
   */
  async #writeStatus(
    observation: ObservedPool,
    decision: PoolDecision,
    findings: StatusFindings,
    signal: AbortSignal,
  ): Promise<number> {
    const { client, caches, now } = this.#parts;
    const { name } = observation.pool.metadata;
    const before = observation.pool.status;
    const { events } = this.#reporters(observation.pool, configOf(observation.target));
    const current = caches.pools.get(name) ?? observation.pool;
    const inputs = {
      observation,
      machineCount: observation.nodes.length + decision.settled.nodes,
      decision,
      findings,
      failing: this.#failures.of(name),
      disputes: this.#parts.membership.disputesOf(name),
      streamOfConfig: (config: string) =>
        caches.machineConfigs.get(config)?.metadata.annotations?.[annotations.osImageStream],
      parts: this.#parts.statusParts.map((of) => of(observation.members.names())),
    };
    const compute = (pool: MachineConfigPool) => poolStatus({ ...inputs, pool }, now());
    const wait = statusWait(current.status, compute(current), this.#statusWrittenAt.get(name), now());
    if (wait > 0) return wait;
    const after = await updateStatus(client, MachineConfigPools, current, compute, { signal });
    if (after !== current) this.#statusWrittenAt.set(name, now());
    caches.pools.remember(after);
    this.#measureBootImage(observation, decision, after.status?.bootImage?.image);
    this.#traceRollout(observation, { before, after: after.status });
    if (before?.configuration?.name !== after.status?.configuration?.name)
      events.normal(observation.pool, 'Completed', `All nodes run ${formatPoolTarget(observation.target)}`);
    if (decision.halted !== undefined && !isStopped(before))
      events.warning(observation.pool, 'RolloutStopped', `Pool ${name}: ${decision.halted}`);
    const held = newlyHeld(before, decision);
    if (held !== undefined) events.normal(observation.pool, 'UpdatesHeld', `Pool ${name}: ${held}`);
    return 0;
  }

  #measureBootImage(
    { pool, record, target }: ObservedPool,
    { states }: PoolDecision,
    bootImage: string | undefined,
  ): void {
    const { caches, metrics } = this.#parts;
    const { name } = pool.metadata;
    const newNodes = states.filter(isNew).flatMap((node) => caches.machineConfigNodes.get(node.name) ?? []);
    metrics?.setBootImageLag(name, bootImageLag(record, bootImage, target));
    metrics?.setNewNodeImageLag(name, newNodesLag(record, bootImage, newNodes));
  }
}

/**
 * The event of one node causes a pass over every node that is not settled. While those are many, the events of a moment
 * share a pass, and a pool takes no more than a tenth of a processor, however large it is.
 */
function restAfterPass(nodes: number): number {
  return Math.floor(nodes * REST_PER_NODE);
}

function isStopped(status: MachineConfigPool['status']): boolean {
  return status?.conditions?.find(({ type }) => type === 'Updating')?.reason === 'RolloutStopped';
}

/**
 * @returns what the pool waits for, where it did not wait for the same before. A wave that is in progress is the
 * rollout itself.
 */
function newlyHeld(
  status: MachineConfigPool['status'],
  { startWaits: [first] }: PoolDecision,
): string | undefined {
  if (first === undefined || first.reason === 'WaveIncomplete') return undefined;
  const before = status?.conditions?.find(({ type }) => type === 'UpdatesHeld');
  return before?.status === 'True' && before.reason === first.reason ? undefined : first.message;
}

/** @returns ms until a pool that is rolled back no longer waits for a label; no event marks that moment. */
function rollbackWait({ target }: PoolObservation, { at }: PoolDecision): number | undefined {
  return target.kind === 'rolled-back' && target.awaits !== undefined
    ? Math.max(1, target.awaits.until - at)
    : undefined;
}

/** @returns ms until the pool is rolled back unless its change is confirmed; no event marks that moment. */
function deadlineWait({ rollback: { deadline } }: ObservedPool, { at }: PoolDecision): number | undefined {
  return deadline.kind === 'waits' ? Math.min(Math.max(1, deadline.until - at), LONGEST_WAIT) : undefined;
}

/** ms; no timer of Node's is longer, and a clock that is set is noticed. */
const LONGEST_WAIT = 60_000;

import type { Logger } from 'pino';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { aboutChange, type Tellers } from '../../cluster/about-change.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { updateStatus } from '../../cluster/update-status.ts';
import type { Caches } from '../caches.ts';
import { inParallel } from '../in-parallel.ts';
import { countPhases, type RolloutMetrics } from '../reports/metrics.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { MachineLookup } from '../node-claims.ts';
import { MaintenanceLookup } from '../node-maintenance.ts';
import type { RolloutOptions } from '../options.ts';
import { rolloutSpan } from '../reports/spans.ts';
import { carryOut, noFindings, PARALLEL_NODES } from '../act/carry-out.ts';
import {
  decidePool,
  lookAgainAfter,
  type ObservedNode,
  type PoolDecision,
  type PoolObservation,
} from '../pools/decide-pool.ts';
import type { Membership } from '../pools/membership.ts';
import { isReady, progressOf } from '../pools/node-state.ts';
import type { NodeWork } from '../act/node-work.ts';
import { type PoolAim, poolAim } from './observe-pool.ts';
import type { PoolMembers } from '../pools/pool-members.ts';
import { type PoolStatusInputs, poolStatus, targetInWords } from '../pools/pool-status.ts';
import { configOf } from '../pools/pool-target.ts';
import { aimOf, type RestingCount } from '../pools/resting-nodes.ts';
import { automaticRequest, type RollbackRequest } from '../pools/rollback.ts';
import { statusWait } from '../pools/status-pace.ts';

export interface PoolControllerParts {
  readonly client: ApiClient;
  readonly caches: Caches;
  readonly membership: Membership;
  readonly leases: NodeLeases;
  readonly machines: MachineLookup;
  readonly work: NodeWork;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly options: RolloutOptions;
  readonly metrics: RolloutMetrics;
  readonly tracer: Tracer;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** ms; ten times what it costs to look at a node. */
const REST_PER_NODE = 0.05;

/** What one look at a pool sees. */
interface Look extends PoolObservation, PoolAim {
  readonly members: PoolMembers;
  /** When the look began, for the nodes that may rest after it. */
  readonly moment: number;
  readonly resting: RestingCount;
}

/**
 * The controller of pools: gives nodes their targets, leads each through its update and keeps the pool's status.
 *
 * One look at a pool reads its nodes from the caches, decides everything at once (decide-pool.ts) and writes what has
 * to change. Between looks it remembers nothing but which nodes need none (pool-members.ts), and when it wrote last.
 */
export class PoolController {
  readonly #parts: PoolControllerParts;
  readonly #maintenance: MaintenanceLookup;
  readonly #machines: MachineLookup;
  readonly #statusWrittenAt = new Map<string, number>();

  constructor(parts: PoolControllerParts) {
    this.#parts = parts;
    this.#machines = parts.machines;
    this.#maintenance = new MaintenanceLookup(parts.client, parts.now);
  }

  /** @throws ApiError or AggregateError when some write failed; everything else has been done all the same. */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { caches, options, metrics, now } = this.#parts;
    const pool = caches.pools.get(name);
    if (pool === undefined) {
      metrics.poolGone(name);
      this.#statusWrittenAt.delete(name);
      return done;
    }
    const seen = await this.#observe(pool, signal);
    const decision = decidePool(seen, options, now());
    this.#layToRest(seen, decision);
    const findings = noFindings();
    const failure = await outcomeOf(async () => {
      await this.#keepRollback(seen, decision, signal);
      await carryOut(this.#parts, seen, decision, findings, signal);
    });
    metrics.pool(name, countPhases(decision.states, decision.resting.nodes), findings.stuckDrains.size);
    const wait = await this.#writeStatus(seen, decision, findings, signal);
    if (failure !== undefined) throw failure.error;
    const waits = [...findings.waits, lookAgainAfter(decision, seen.settings, options)];
    const next = [...waits, wait > 0 ? wait : undefined].filter((after) => after !== undefined);
    const result = next.length === 0 ? done : requeueAfter(Math.min(...next));
    return { ...result, restMs: restAfterLook(seen.nodes.length) };
  }

  async #observe(pool: MachineConfigPool, signal: AbortSignal): Promise<Look> {
    const { caches, membership, options } = this.#parts;
    const members = membership.membersOf(pool.metadata.name);
    const poolWide = poolAim(caches, options, pool, members);
    const { awake, resting } = members.divide(aimOf(poolWide));
    const moment = members.now();
    const inMaintenance = await this.#inMaintenance(awake, signal);
    const disturbed = [...inMaintenance].filter((node) => members.rests(node));
    const looked = this.#read([...awake, ...disturbed].toSorted());
    await inParallel(looked, PARALLEL_NODES, async ({ node }) => {
      if (mayBeOnItsWayOut(node)) await this.#machines.isDeleting(node, signal);
    });
    return {
      ...poolWide,
      members,
      moment,
      resting: { ...resting, nodes: resting.nodes - disturbed.length },
      nodes: looked.map((member) => ({
        ...member,
        inMaintenance: inMaintenance.has(member.node.metadata.name),
        machineDeleting: this.#machines.known(member.node),
      })),
    };
  }

  #read(names: readonly string[]): Pick<ObservedNode, 'node' | 'machineConfigNode' | 'lease'>[] {
    const { caches, leases } = this.#parts;
    return names.flatMap((name) => {
      const node = caches.nodes.get(name);
      const machineConfigNode = caches.machineConfigNodes.get(name);
      return node === undefined ? [] : [{ node, machineConfigNode, lease: leases.holding(name) }];
    });
  }

  /** It costs a request, so only where a node may be taken next, or where it may be why a node is not to be had. */
  async #inMaintenance(awake: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const matters = this.#read(awake).some(
      ({ node, machineConfigNode: of }) => (of && awaitsGrant(of)) || mayBeOnItsWayOut(node),
    );
    return matters ? await this.#maintenance.nodes(signal) : new Set();
  }

  #layToRest({ members, moment }: Look, { mayRest }: PoolDecision): void {
    for (const { name, architecture } of mayRest) members.lay(name, architecture, moment);
  }

  /** Keeps the annotation by which a pool is held at an earlier target. */
  async #keepRollback(
    { pool, settings, wanted, rollback }: PoolAim,
    { goBackTo, halted = '' }: PoolDecision,
    signal: AbortSignal,
  ): Promise<void> {
    const { now } = this.#parts;
    const events = (config: string | undefined) => this.#tellers(pool, config).events;
    if (goBackTo !== undefined) {
      const request = automaticRequest(goBackTo, wanted, halted, new Date(now()));
      await this.#annotate(pool, request, signal);
      events(request.config).warning(
        pool,
        'RollingBack',
        `Going back to ${request.image ?? request.config}: ${halted}`,
      );
    } else if (rollback.kind === 'over') {
      await this.#annotate(pool, undefined, signal);
      events(undefined).normal(pool, 'RollbackOver', `No longer held at an earlier target: ${rollback.why}`);
    } else if (rollback.kind === 'held' && rollback.from !== undefined && settings.rollback !== undefined) {
      await this.#annotate(pool, { ...settings.rollback, from: rollback.from }, signal);
      events(rollback.target.target.config).normal(
        pool,
        'RollingBack',
        `Going to ${targetInWords(rollback.target)}: ${rollback.target.why}`,
      );
    }
  }

  async #annotate(
    { metadata: { name, resourceVersion } }: MachineConfigPool,
    request: RollbackRequest | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const text = request === undefined ? null : JSON.stringify(request);
    const body = { metadata: { resourceVersion, annotations: { [annotations.rollback]: text } } };
    const patched = await this.#parts.client.patch(
      MachineConfigPools,
      name,
      { type: 'merge', body },
      { signal },
    );
    this.#parts.caches.pools.remember(patched);
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
  #tellers({ spec }: MachineConfigPool, config = spec.configuration?.name): Tellers {
    return aboutChange(this.#parts, config);
  }

  /** @returns ms after which the status is to be written, where it was written a moment ago; 0: it is as it should be. */
  async #writeStatus(
    seen: PoolObservation,
    decision: PoolDecision,
    findings: Pick<PoolStatusInputs, 'notes' | 'stuckDrains'>,
    signal: AbortSignal,
  ): Promise<number> {
    const { client, caches, now } = this.#parts;
    const { settings, target } = seen;
    const { name } = seen.pool.metadata;
    const machineCount = seen.nodes.length + decision.resting.nodes;
    const before = seen.pool.status;
    const { events } = this.#tellers(seen.pool, configOf(target));
    const current = caches.pools.get(name) ?? seen.pool;
    const compute = (pool: MachineConfigPool) =>
      poolStatus({ pool, settings, target, machineCount, decision, ...findings }, now());
    const wait = statusWait(current.status, compute(current), this.#statusWrittenAt.get(name), now());
    if (wait > 0) return wait;
    const after = await updateStatus(client, MachineConfigPools, current, compute, { signal });
    if (after !== current) this.#statusWrittenAt.set(name, now());
    caches.pools.remember(after);
    this.#traceRollout(seen, { before, after: after.status });
    if (before?.configuration?.name !== after.status?.configuration?.name)
      events.normal(seen.pool, 'Completed', `Every node runs ${targetInWords(seen.target)}`);
    if (decision.halted !== undefined && !isStopped(before))
      events.warning(seen.pool, 'RolloutStopped', decision.halted);
    return 0;
  }
}

/**
 * One node's event has every node looked at that is under way. While those are many, the events of a moment share a
 * look, and a pool takes no more than a tenth of a processor, however large it is.
 */
function restAfterLook(nodes: number): number {
  return Math.floor(nodes * REST_PER_NODE);
}

function awaitsGrant({ spec, status }: MachineConfigNode): boolean {
  return spec.grant === undefined && progressOf(spec, status).kind === 'staged';
}

/** Whoever deletes a Machine or maintains a node cordons it first, or lets the host end. */
function mayBeOnItsWayOut(node: Node): boolean {
  const cordonedByOthers =
    node.spec?.unschedulable === true &&
    node.metadata.annotations?.[annotations.cordonedByShale] === undefined;
  return cordonedByOthers || !isReady(node);
}

function isStopped(status: MachineConfigPool['status']): boolean {
  return status?.conditions?.find(({ type }) => type === 'Updating')?.reason === 'RolloutStopped';
}

async function outcomeOf(work: () => Promise<void>): Promise<{ readonly error: unknown } | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return { error };
  }
}

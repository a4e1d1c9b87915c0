import type { RollbackRequest } from '../../api/annotation-requests.ts';
import { signingKeysVersion } from '../../api/image-signing.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations, MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { byCodeUnits } from '../../api/order.ts';
import { ETCD_PODS } from '../../api/pool-settings/values.ts';
import { otherOwner } from '../../api/repository-owner.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { unlistedConfigs } from '../../disruption/label-coverage.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { storageOverrides, suspensionOf } from '../../disruption/settings.ts';
import {
  type ComparedConfigs,
  reconcilability,
  type WhyIrreconcilable,
} from '../../predict/node/irreconcilable-nodes.ts';
import { PARALLEL_NODES } from '../act/carry-out.ts';
import type { PoolRecorder } from '../act/keep-record.ts';
import type { Caches } from '../caches.ts';
import type { DueRenderings } from '../due-renderings.ts';
import { fleetLockId } from '../fleet-lock/node-id.ts';
import type { FleetLockSlots } from '../fleet-lock/slots.ts';
import { mayVote, quorumAmong } from '../gates/quorum.ts';
import { targetBases } from '../gates/vulnerabilities.ts';
import { inParallel } from '../in-parallel.ts';
import type { MonitoringLookups } from '../monitoring/lookup.ts';
import type { MachineLookup, MaintenanceLookup } from '../node-claims.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import type { Membership, PoolMembers } from '../pools/membership.ts';
import { isReady } from '../pools/node-availability.ts';
import { hasTarget } from '../pools/node-target.ts';
import type { DecidedOn } from '../pools/pool-conditions.ts';
import {
  fingerprintOf,
  type ObservedNode,
  type PoolObservation,
  type SettledCount,
} from '../pools/pool-observation.ts';
import { type PoolRecord, recordOf } from '../pools/pool-record.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { type LayeringCoverage, nodeTarget, type PoolTarget, poolTarget } from '../pools/pool-target.ts';
import { progressOf } from '../pools/progress.ts';
import {
  decideRollback,
  lastGood,
  type Rollback,
  type RollbackKnowledge,
  runningTarget,
} from '../pools/rollback.ts';
import {
  type DeadlineState,
  decideDeadline,
  noDeadline,
  unconfirmedRequest,
} from '../pools/rollback-deadline.ts';
import { listPods } from '../quorum-pods.ts';
import { findAwaited, isRenderingDue, settingsAmong } from './observe-dependencies.ts';
import { rollbackKnowledge } from './observe-rollback.ts';

/** A pool, its target and its settings. */
interface ResolvedPool extends Omit<PoolObservation, 'nodes' | 'settled'> {
  /** The target that the pool would have if no rollback held it. */
  readonly ownTarget: PoolTarget;
  readonly rollback: Rollback;
  /** What `rollback` is decided about: the pool's annotation, or what a deadline that has passed puts there. */
  readonly rollbackRequest: RollbackRequest | undefined;
  readonly deadline: DeadlineState;
  readonly record: PoolRecord;
}

/** What one pass over a pool observed. */
export interface ObservedPool extends ResolvedPool {
  readonly nodes: PoolObservation['nodes'];
  readonly members: PoolMembers;
  /** When the pass began, for the nodes that settle with it. */
  readonly moment: number;
  readonly settled: SettledCount;
  readonly decided: DecidedOn;
}

export interface PoolObserverParts {
  readonly client: ApiClient;
  readonly caches: Caches;
  readonly membership: Membership;
  readonly renderings: Pick<DueRenderings, 'has'>;
  readonly leases: NodeLeases;
  readonly machines: MachineLookup;
  readonly maintenances: Pick<MaintenanceLookup, 'nodes'>;
  readonly lookups: MonitoringLookups;
  readonly slots: Pick<FleetLockSlots, 'stateOf'>;
  readonly recorder: Pick<PoolRecorder, 'checkOf'>;
  /** What the layering switch asks for a pool. */
  readonly coverageOf: (pool: MachineConfigPool) => LayeringCoverage;
  readonly options: RolloutOptions;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** Observes a pool: its target, its settings, and those of its nodes that something may have to be done about. */
export class PoolObserver {
  readonly #parts: PoolObserverParts;
  #compared: { readonly key: string; readonly configs: ComparedConfigs } = {
    key: '',
    configs: new WeakMap(),
  };

  constructor(parts: PoolObserverParts) {
    this.#parts = parts;
  }

  /** @throws ApiError when Machines or NodeMaintenances can't be read. */
  async observe(pool: MachineConfigPool, signal: AbortSignal): Promise<ObservedPool> {
    const { membership, machines } = this.#parts;
    const members = membership.membersOf(pool.metadata.name);
    const resolved = this.#resolve(pool, members);
    const { active, settled } = members.divide(fingerprintOf(resolved));
    const moment = members.now();
    const inMaintenance = await this.#inMaintenance(active, resolved.target, signal);
    const disturbed = [...inMaintenance].filter((node) => members.isSettled(node));
    const nodes = this.#read([...active, ...disturbed].toSorted());
    const leaving = nodes.filter(({ node }) => mayBeLeaving(node));
    await inParallel(leaving, PARALLEL_NODES, async ({ node }) => {
      await machines.isDeleting(node, signal);
    });
    return {
      ...resolved,
      members,
      moment,
      quorum: await this.#quorum(active, resolved.settings, signal),
      decided: this.#decidedOn(pool),
      settled: { ...settled, nodes: settled.nodes - disturbed.length },
      nodes: nodes.map((member) => ({
        ...member,
        inMaintenance: inMaintenance.has(member.node.metadata.name),
        machineDeleting: machines.known(member.node),
      })),
    };
  }

  #decidedOn(pool: MachineConfigPool): DecidedOn {
    return { generation: pool.metadata.generation, renderingDue: isRenderingDue(pool, this.#parts) };
  }

  /** @param members the pool's nodes; their earlier targets matter only to a pool that is or may be rolled back. */
  #resolve(pool: MachineConfigPool, members: PoolMembers): ResolvedPool {
    const { caches, options, recorder, lookups } = this.#parts;
    const { name } = pool.metadata;
    const record = recordOf(pool, caches.poolRevisions.list());
    const configuration = caches.machineConfigurations.get(MACHINE_CONFIGURATION);
    const { policies, policyDigest } = policiesOfPool(configuration?.status, name) ?? {};
    const builds = caches.machineOSBuilds.list().filter(({ spec }) => spec.machineOSConfig.name === name);
    // A MachineOSConfig has its pool's name (machineOSConfigRules); one that is being deleted asks for nothing.
    const machineOSConfig = caches.machineOSConfigs.get(name);
    const unlisted = (build: MachineOSBuild) =>
      policies === undefined
        ? []
        : unlistedConfigs({
            build,
            nodes: this.#nodesOf(members),
            configs: (config) => caches.machineConfigs.get(config),
            policies,
            policyDigest,
          });
    const repositoryOwner = this.#repositoryOwner(machineOSConfig);
    const ownTarget = poolTarget({
      pool,
      rendered: caches.machineConfigs.get(pool.spec.configuration?.name ?? ''),
      machineOSConfig:
        machineOSConfig?.metadata.deletionTimestamp === undefined ? machineOSConfig : undefined,
      repositoryOwner,
      coverage: this.#parts.coverageOf(pool),
      hasImages: () => [...this.#nodesOf(members)].some(hasImage),
      builds,
      policyDigest,
      record,
      checkOf: (build) => recorder.checkOf(name, build),
      unlisted,
    });
    const settings = settingsOf(settingsAmong(pool, this.#parts), configuration, policies !== undefined);
    const keys = caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, options.namespace);
    const imageSigningKeys = keys === undefined ? undefined : signingKeysVersion(keys.data ?? {});
    const whyIrreconcilable = this.#reconcilability(pool);
    const same = {
      pool,
      policyDigest,
      imageSigningKeys,
      whyIrreconcilable,
      ownTarget,
      record,
      awaitedPools: findAwaited(pool, settings, this.#parts),
      targetBases: ownTarget.kind === 'layered' ? targetBases(builds, ownTarget.target.image) : undefined,
      ...(settings.holdOnAlerts.kind === 'none'
        ? {}
        : { alerts: () => lookups.alerts.stateOf(name, settings.holdOnAlerts) }),
      ...(settings.holdOnQueries.kind === 'none'
        ? {}
        : { queries: () => lookups.queries.stateOf(name, settings.holdOnQueries) }),
      fleetLock: this.#fleetLock(name, settings),
    };
    const { rollback: asked, deadline: limit, autoRollback } = settings;
    if (asked === undefined && limit === undefined && !autoRollback)
      return {
        ...same,
        settings,
        target: ownTarget,
        rollback: { kind: 'none' },
        deadline: noDeadline,
        rollbackRequest: undefined,
      };
    const known = () =>
      rollbackKnowledge(
        { pool, members, record, builds, machineOSConfig, repositoryOwner, policyDigest, unlisted },
        this.#parts,
      );
    return {
      ...same,
      ...this.#held(pool, settings, ownTarget, known),
      ...(autoRollback ? { lastGood: () => lastGood(pool, ownTarget, known()) } : {}),
    };
  }

  /** @returns the target of a pool that is rolled back, or is going to be unless its change is confirmed. */
  #held(
    pool: MachineConfigPool,
    settings: PoolSettings,
    ownTarget: PoolTarget,
    known: () => RollbackKnowledge,
  ): Pick<ResolvedPool, 'settings' | 'target' | 'rollback' | 'rollbackRequest' | 'deadline'> {
    const now = this.#parts.now();
    const deadline = decideDeadline(
      settings.deadline,
      pool.status?.rollbackDeadline,
      () => runningTarget(pool, ownTarget, known()),
      now,
    );
    const rollbackRequest =
      settings.rollback ?? (deadline.kind === 'passed' ? unconfirmedRequest(deadline, now) : undefined);
    const rollback: Rollback =
      rollbackRequest === undefined
        ? { kind: 'none' }
        : decideRollback(rollbackRequest, ownTarget, known(), now);
    return {
      settings: { ...settings, closed: closedBecause(rollback, deadline) ?? settings.closed },
      target: rollback.kind === 'rolled-back' ? rollback.target : ownTarget,
      rollback,
      rollbackRequest,
      deadline,
    };
  }

  /** @returns what asks for a node's slot; undefined in a pool that names no lock service. */
  #fleetLock(pool: string, { fleetLock }: PoolSettings): PoolObservation['fleetLock'] {
    const { caches, slots } = this.#parts;
    switch (fleetLock.kind) {
      case 'none':
        return undefined;
      case 'unreadable':
        return () => ({ kind: 'unknown', why: "spec.shale.fleetLock can't be read" });
      case 'named':
        return (name) => {
          const node = caches.nodes.get(name);
          return node === undefined
            ? { kind: 'asking' }
            : slots.stateOf(pool, name, fleetLockId(node), fleetLock.lock);
        };
    }
  }

  #repositoryOwner(config: MachineOSConfig | undefined): string | undefined {
    const { machineOSConfigs, poolRevisions } = this.#parts.caches;
    if (config === undefined) return undefined;
    return otherOwner(config, machineOSConfigs.list(), () =>
      poolRevisions
        .list()
        .flatMap(({ metadata, spec: { machineConfigPool, image } }) =>
          image === undefined
            ? []
            : [{ pool: machineConfigPool.name, image, since: metadata.creationTimestamp ?? '' }],
        ),
    );
  }

  #reconcilability({ spec }: MachineConfigPool): WhyIrreconcilable {
    const { caches, options } = this.#parts;
    const { name: rendered, source = [] } = spec.configuration ?? {};
    const overrides = storageOverrides(caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.spec);
    const inputs = {
      configOf: (name: string) => caches.machineConfigs.get(name),
      // Of an earlier rendering it is not recorded what it was rendered from.
      sourcesOf: (name: string) =>
        name === rendered ? source.flatMap((each) => caches.machineConfigs.get(each.name ?? '') ?? []) : [],
      limits: options.limits,
      nodeUser: options.nodeUser,
      overrides,
    };
    const key = [...overrides].sort(byCodeUnits).join();
    // What was compared under other overrides says nothing.
    if (this.#compared.key !== key) this.#compared = { key, configs: new WeakMap() };
    return reconcilability(inputs, this.#compared.configs);
  }

  *#nodesOf(members: PoolMembers): Generator<MachineConfigNode> {
    for (const name of members.names()) {
      const node = this.#parts.caches.machineConfigNodes.get(name);
      if (node !== undefined) yield node;
    }
  }

  #read(names: readonly string[]): Pick<ObservedNode, 'node' | 'machineConfigNode' | 'lease'>[] {
    const { caches, leases } = this.#parts;
    return names.flatMap((name) => {
      const node = caches.nodes.get(name);
      const machineConfigNode = caches.machineConfigNodes.get(name);
      return node === undefined ? [] : [{ node, machineConfigNode, lease: leases.holding(name) }];
    });
  }

  /** Lists pods only where a node that may vote could be disrupted next, or be granted that. */
  async #quorum(
    active: readonly string[],
    { quorumPods }: PoolSettings,
    signal: AbortSignal,
  ): Promise<PoolObservation['quorum']> {
    const { nodes, machineConfigNodes } = this.#parts.caches;
    const isNamed = quorumPods !== ETCD_PODS;
    const matters = active.some((name) => {
      const [node, of] = [nodes.get(name), machineConfigNodes.get(name)];
      return node !== undefined && of !== undefined && (isNamed || mayVote(node)) && awaitsGrant(of);
    });
    if (!matters) return undefined;
    const pods = await listPods(this.#parts.client, quorumPods, signal);
    const machineConfigNode = (name: string) => machineConfigNodes.get(name);
    return quorumAmong({ nodes: nodes.list(), pods, machineConfigNode });
  }

  /** Costs a request, so it is read only where a node may be updated next, or may be unavailable for this reason. */
  async #inMaintenance(
    active: readonly string[],
    target: PoolTarget,
    signal: AbortSignal,
  ): Promise<ReadonlySet<string>> {
    const { nodes, machineConfigNodes } = this.#parts.caches;
    const matters = active.some((name) => {
      const [node, of] = [nodes.get(name), machineConfigNodes.get(name)];
      return node !== undefined && (awaitsTarget(of, target) || mayBeLeaving(node));
    });
    return matters ? await this.#parts.maintenances.nodes(signal) : new Set();
  }
}

/**
 * What holds for the whole cluster. Until the operator has found out which policies hold for a pool, no node may act by
 * others.
 */
function settingsOf(
  settings: PoolSettings,
  configuration: MachineConfiguration | undefined,
  hasPolicies: boolean,
): PoolSettings {
  const suspended = suspensionOf(configuration?.spec)?.why;
  const lacksPolicies = !hasPolicies && configuration?.status?.poolPolicies !== undefined;
  return {
    ...settings,
    suspended,
    ...(lacksPolicies && settings.closed === undefined
      ? { closed: 'the disruption policies for this pool are not in effect yet' }
      : {}),
  };
}

/** @returns why no update starts in a pool that can't be rolled back as it was asked. */
function closedBecause(rollback: Rollback, deadline: DeadlineState): string | undefined {
  if (rollback.kind === 'refused') return `the pool can't be rolled back: ${rollback.why}`;
  if (deadline.kind === 'refused')
    return `the deadline in annotation ${annotations.rollbackDeadline} is refused: ${deadline.why}; remove it, and set another one`;
  return undefined;
}

function awaitsGrant({ spec, status }: MachineConfigNode): boolean {
  return spec.grant === undefined && progressOf(spec, status).kind === 'staged';
}

/** It runs an image, or is on its way to or from one. */
function hasImage({ spec, status }: MachineConfigNode): boolean {
  return (spec.configImage ?? status?.configImage?.currentImage) !== undefined;
}

/** Whether a node may be given something to write, or may be disrupted: not while it is in maintenance. */
function awaitsTarget(of: MachineConfigNode | undefined, target: PoolTarget): boolean {
  const desired = nodeTarget(target, of);
  if (of === undefined) return desired !== undefined;
  return awaitsGrant(of) || (desired !== undefined && !hasTarget(of.spec, desired));
}

/**
 * A Machine that is deleted, or a node in maintenance, is cordoned first or stops being Ready. Of a node that Shale has
 * cordoned, neither shows: it may be deleted before its grant.
 */
function mayBeLeaving(node: Node): boolean {
  return node.spec?.unschedulable === true || !isReady(node);
}

import type { Logger } from 'pino';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { type ApiClient, isAlreadyExists, isNotFound } from '../../cluster/api-client.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import type { ImageCheck } from '../pools/admit-image.ts';
import type { ImageClaim, ProveImage } from '../pools/image-proof.ts';
import { type NodeTarget, nodeTargetOf } from '../pools/node-target.ts';
import {
  expiredOrphans,
  expiredRevisions,
  firstTargets,
  type NewRevision,
  newRevisions,
  type PoolRecord,
  type RolledBackTo,
} from '../pools/pool-record.ts';
import type { PoolRollback } from '../pools/pool-rollback.ts';
import { type PoolTarget, standardTarget } from '../pools/pool-target.ts';
import { isRenderedFor } from '../rendering/pool-rendering.ts';
import { withKeeper } from '../rendering/rendered-owners.ts';
import { ImageProofs } from './image-proofs.ts';

export interface PoolRecorderParts {
  readonly client: ApiClient;
  readonly caches: Pick<
    Caches,
    | 'machineConfigs'
    | 'machineConfigNodes'
    | 'machineConfigurations'
    | 'machineOSBuilds'
    | 'machineOSConfigs'
    | 'pools'
    | 'poolRevisions'
    | 'signingKeys'
  >;
  readonly proveImage: ProveImage;
  /** Called for a pool when the proof of an image has ended that no pass waited for. */
  readonly onProof: (pool: string) => void;
  readonly options: Pick<RolloutOptions, 'namespace'>;
  readonly log: Logger;
}

/** What of an observed pool its record depends on. */
export interface PoolToRecord {
  readonly pool: MachineConfigPool;
  readonly target: PoolTarget;
  readonly rollback: PoolRollback;
  readonly record: PoolRecord;
  /** Whether a node is about to get its first target. */
  readonly hasUnassignedNodes: boolean;
}

/** ms; a registry that did not answer is asked again. */
const READ_AGAIN = 10_000;
/** ms; the next look writes what was found into the status. */
const REPORT_NOW = 1;

/** Keeps the records of what the nodes of each pool may run. A target is recorded before a node gets it. */
export class PoolRecorder {
  readonly #parts: PoolRecorderParts;
  /** By pool: what the checks of the images of its candidates found. */
  readonly #checks = new Map<string, Map<string, ImageCheck>>();
  readonly #proofs: ImageProofs;

  constructor(parts: PoolRecorderParts) {
    this.#parts = parts;
    this.#proofs = new ImageProofs({ onOutcome: parts.onProof });
  }

  /** @returns what the check of a build's image found; undefined before it is checked. */
  checkOf(pool: string, build: MachineOSBuild): ImageCheck | undefined {
    return this.#checks.get(pool)?.get(imageKey(build));
  }

  forget(pool: string): void {
    this.#checks.delete(pool);
  }

  /**
   * Records what is not recorded yet: the first targets of a pool without a record, its target, and the image that a
   * build claims if the operator computes the same one.
   *
   * @returns ms until the pool has to be looked at again; undefined if only a change matters.
   * @throws ApiError; then no node gets the target.
   */
  async keep(observed: PoolToRecord, signal: AbortSignal): Promise<number | undefined> {
    const { pool, target, record, hasUnassignedNodes } = observed;
    const targets: NewRevision[] = [
      ...(record.length === 0 ? this.#first(pool) : []),
      ...assignable(target, hasUnassignedNodes),
    ].map((each) => ({ target: each }));
    const revisions = this.#new(pool, targets);
    await this.#create(revisions, signal);
    await this.#expire(observed, signal);
    const candidates = candidatesOf(observed.rollback);
    this.#forgetOthers(pool.metadata.name, candidates);
    // The image may be among the first targets: the watch shows what was recorded, and the next look knows.
    if (record.length === 0 && revisions.length > 0) return undefined;
    const waits: number[] = [];
    for (const candidate of candidates) {
      const wait = await this.#check(observed, candidate, signal);
      if (wait !== undefined) waits.push(wait);
    }
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** What is refused stays so as long as its build claims it. */
  #forgetOthers(pool: string, candidates: readonly Candidate[]): void {
    const kept = new Set(candidates.map(({ build }) => imageKey(build)));
    const claimed = new Set(this.#parts.caches.machineOSBuilds.list().map(imageKey));
    const checks = this.#checks.get(pool) ?? new Map<string, ImageCheck>();
    for (const [key, { kind }] of checks)
      if (!(kind === 'refused' ? claimed : kept).has(key)) checks.delete(key);
    this.#proofs.forget((key) => claimed.has(key));
  }

  async #check(
    observed: PoolToRecord,
    candidate: Candidate,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { pool } = observed;
    const { build } = candidate;
    const { name } = pool.metadata;
    const claim = this.#claimOf(observed, candidate);
    if (claim === undefined) return undefined;
    const outcome = await this.#proofs.outcomeOf(
      name,
      imageKey(build),
      (until) => this.#parts.proveImage(claim, until),
      signal,
    );
    if (outcome === undefined) return undefined;
    if (outcome.kind === 'proven') {
      this.#checks.get(name)?.delete(imageKey(build));
      const target = { config: build.spec.machineConfig.name, image: imageOf(build) };
      const origin = { build, proven: outcome };
      await this.#create(this.#new(pool, [{ target, origin }]), signal);
      return undefined;
    }
    return this.#remember(name, build, outcome);
  }

  /** @returns undefined where nobody says any more what the image has to be. */
  #claimOf({ pool, record }: PoolToRecord, { build, isRollback }: Candidate): ImageClaim | undefined {
    const { caches, options } = this.#parts;
    const { name } = pool.metadata;
    const machineOSConfig = caches.machineOSConfigs.get(name);
    const rendered = caches.machineConfigs.get(build.spec.machineConfig.name);
    if (machineOSConfig === undefined || rendered === undefined) return undefined;
    const { status } = caches.machineConfigurations.get(MACHINE_CONFIGURATION) ?? {};
    return {
      build,
      machineOSConfig,
      rendered,
      record,
      isRollback,
      inForce: policiesOfPool(status, name),
      configs: (config) => caches.machineConfigs.get(config),
      signingKeys: caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, options.namespace)?.data ?? {},
    };
  }

  #remember(pool: string, build: MachineOSBuild, check: ImageCheck): number {
    const before = this.checkOf(pool, build);
    const checks = this.#checks.get(pool) ?? new Map<string, ImageCheck>();
    this.#checks.set(pool, checks.set(imageKey(build), check));
    if (before?.kind === check.kind && before.why === check.why) return READ_AGAIN;
    const { kind, why } = check;
    this.#parts.log.warn(
      { pool, build: build.metadata.name, image: imageOf(build), why },
      `image is ${kind}`,
    );
    return REPORT_NOW;
  }

  /** What the operator assigned before it kept a record; of what all nodes ran, the config that it rendered itself. */
  #first(pool: MachineConfigPool): readonly NodeTarget[] {
    const { machineConfigs, machineConfigNodes } = this.#parts.caches;
    const ran = machineConfigs.get(pool.status?.configuration?.name ?? '');
    return [
      ...(ran !== undefined && isRenderedFor(pool, ran) ? [standardTarget(ran.metadata.name, ran)] : []),
      ...firstTargets(pool.metadata.name, machineConfigNodes.list()),
    ];
  }

  #new(pool: MachineConfigPool, targets: readonly NewRevision[]): ReturnType<typeof newRevisions> {
    const { poolRevisions, machineConfigurations } = this.#parts.caches;
    const configuration = machineConfigurations.get(MACHINE_CONFIGURATION);
    return newRevisions(pool, poolRevisions.list(), targets).map((each) => withKeeper(each, configuration));
  }

  async #create(revisions: ReturnType<typeof newRevisions>, signal: AbortSignal): Promise<void> {
    const { client, caches, log } = this.#parts;
    for (const revision of revisions) {
      try {
        caches.poolRevisions.remember(await client.create(PoolRevisions, revision, { signal }));
        const { image, machineConfig } = revision.spec;
        log.info(
          { revision: revision.metadata.name, config: machineConfig.name, image },
          'target is recorded',
        );
      } catch (error) {
        // The cache is behind: the name is of this pool and this target, so it is recorded.
        if (!isAlreadyExists(error)) throw error;
      }
    }
  }

  async #expire(observed: PoolToRecord, signal: AbortSignal): Promise<void> {
    const { pool, target, rollback, record, hasUnassignedNodes } = observed;
    const { client, caches } = this.#parts;
    const used = () => ({
      targets: [
        ...assignable(target, hasUnassignedNodes),
        ...assignable(rollback.ownTarget, hasUnassignedNodes),
        ...caches.machineConfigNodes
          .list()
          .filter(({ spec }) => spec.pool.name === pool.metadata.name)
          .map(({ spec }) => nodeTargetOf(spec)),
      ],
      rollsBackTo: rollbackTargets(rollback),
    });
    const expired = [
      ...expiredRevisions(record, used),
      // The pool itself is as it was observed.
      ...expiredOrphans(caches.poolRevisions.list(), [...caches.pools.list(), pool]),
    ];
    for (const revision of expired) {
      try {
        await client.delete(PoolRevisions, revision.metadata.name, { signal });
      } catch (error) {
        // The pass of another pool was faster.
        if (!isNotFound(error)) throw error;
      }
      caches.poolRevisions.forget(revision);
    }
  }
}

interface Candidate {
  readonly build: MachineOSBuild;
  /** Whether a rollback takes the pool to its image. */
  readonly isRollback: boolean;
}

/** The builds whose images may be recorded: of the pool's own target, and of what it is rolled back to. */
function candidatesOf({ ownTarget, state }: PoolRollback): readonly Candidate[] {
  const own = ownTarget.kind === 'awaiting-image' ? ownTarget.candidate : undefined;
  const relabelled = state.kind === 'rolled-back' ? state.candidate : undefined;
  return [
    ...(own === undefined ? [] : [{ build: own, isRollback: false }]),
    ...(relabelled === undefined ? [] : [{ build: relabelled, isRollback: true }]),
  ];
}

/** A deadline has what it was recorded with, also while its annotation can't be read. */
function rollbackTargets({ request, deadline }: PoolRollback): readonly RolledBackTo[] {
  const recorded = deadline.kind === 'none' ? undefined : deadline.recorded;
  return [
    ...(request === undefined ? [] : [request]),
    ...(recorded?.config === undefined ? [] : [{ ...recorded, config: recorded.config }]),
  ];
}

/** The targets that nodes of the pool may get next. */
function assignable(target: PoolTarget, hasUnassignedNodes: boolean): readonly NodeTarget[] {
  switch (target.kind) {
    case 'none':
      return [];
    case 'standard':
    case 'layered':
    case 'rolled-back':
      return [target.target];
    case 'awaiting-image':
      return hasUnassignedNodes ? [target.initialTarget] : [];
  }
}

/** The same image may be claimed for another config. */
function imageKey(build: MachineOSBuild): string {
  const { metadata, spec } = build;
  return `${metadata.uid ?? metadata.name} ${spec.machineConfig.name} ${imageOf(build) ?? ''}`;
}

function imageOf({ status }: MachineOSBuild): string | undefined {
  return status?.digestedImagePushSpec;
}

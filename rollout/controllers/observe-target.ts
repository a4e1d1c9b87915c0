import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { otherOwner } from '../../api/repository-owner.ts';
import { unlistedConfigs } from '../../disruption/label-coverage.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { suspensionOf } from '../../disruption/settings.ts';
import type { PoolRecorder } from '../act/keep-record.ts';
import type { NodeCaches, PoolCaches } from '../caches.ts';
import type { PoolMembers } from '../pools/membership.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import { type PoolRecord, recordOf } from '../pools/pool-record.ts';
import {
  closedByRollback,
  decidePoolRollback,
  type PoolRollback,
  targetUnder,
} from '../pools/pool-rollback.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { type BuiltImages, type LayeringCoverage, poolTarget } from '../pools/pool-target.ts';
import { lastGood } from '../pools/rollback.ts';
import { type DependencyParts, settingsAmong } from './observe-dependencies.ts';
import { rollbackKnowledge } from './observe-rollback.ts';

type TargetCaches = PoolCaches & Pick<NodeCaches, 'machineConfigNodes'>;

export interface TargetParts extends DependencyParts {
  readonly caches: TargetCaches;
  readonly recorder: Pick<PoolRecorder, 'checkOf'>;
  /** What the layering switch asks for a pool. */
  readonly coverageOf: (pool: MachineConfigPool) => LayeringCoverage;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** A pool's target and what that depends on. */
export interface ObservedTarget extends Pick<PoolObservation, 'settings' | 'target' | 'lastGood'> {
  readonly record: PoolRecord;
  readonly rollback: PoolRollback;
  readonly images: BuiltImages;
}

/** @param members the pool's nodes; their earlier targets matter only to a pool that is or may be rolled back. */
export function observeTarget(
  pool: MachineConfigPool,
  members: PoolMembers,
  parts: TargetParts,
): ObservedTarget {
  const { caches } = parts;
  const { name } = pool.metadata;
  const record = recordOf(pool, caches.poolRevisions.list());
  const configuration = caches.machineConfigurations.get(MACHINE_CONFIGURATION);
  const inForce = policiesOfPool(configuration?.status, name);
  const images = imagesOf(name, members, inForce, parts);
  // A MachineOSConfig has its pool's name (machineOSConfigRules); one that is being deleted asks for nothing.
  const machineOSConfig = caches.machineOSConfigs.get(name);
  const repositoryOwner = ownerOfRepository(machineOSConfig, caches);
  const ownTarget = poolTarget({
    pool,
    rendered: caches.machineConfigs.get(pool.spec.configuration?.name ?? ''),
    machineOSConfig: machineOSConfig?.metadata.deletionTimestamp === undefined ? machineOSConfig : undefined,
    repositoryOwner,
    coverage: parts.coverageOf(pool),
    hasImages: () => [...nodesOf(members, caches)].some(hasImage),
    record,
    images,
  });
  const settings = settingsOf(settingsAmong(pool, parts), configuration, inForce !== undefined);
  const known = () =>
    rollbackKnowledge({ pool, members, record, images, machineOSConfig, repositoryOwner }, parts);
  const rollback = decidePoolRollback(pool, settings, ownTarget, known, parts.now());
  return {
    settings: { ...settings, closed: closedByRollback(rollback) ?? settings.closed },
    target: targetUnder(rollback),
    lastGood: settings.autoRollback ? () => lastGood(pool, ownTarget, known()) : undefined,
    record,
    rollback,
    images,
  };
}

/** @param inForce the disruption policies of the pool; undefined until they are known. */
function imagesOf(
  pool: string,
  members: PoolMembers,
  inForce: ReturnType<typeof policiesOfPool>,
  { caches, recorder }: Pick<TargetParts, 'caches' | 'recorder'>,
): BuiltImages {
  return {
    builds: caches.machineOSBuilds.list().filter(({ spec }) => spec.machineOSConfig.name === pool),
    policyDigest: inForce?.policyDigest,
    checkOf: (build) => recorder.checkOf(pool, build),
    unlisted: (build) =>
      inForce?.policies === undefined
        ? []
        : unlistedConfigs({
            build,
            nodes: nodesOf(members, caches),
            configs: (config) => caches.machineConfigs.get(config),
            policies: inForce.policies,
            policyDigest: inForce.policyDigest,
          }),
  };
}

function ownerOfRepository(
  config: MachineOSConfig | undefined,
  { machineOSConfigs, poolRevisions }: PoolCaches,
): string | undefined {
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

function* nodesOf(members: PoolMembers, { machineConfigNodes }: TargetCaches): Generator<MachineConfigNode> {
  for (const name of members.names()) {
    const node = machineConfigNodes.get(name);
    if (node !== undefined) yield node;
  }
}

/** It runs an image, or is on its way to or from one. */
function hasImage({ spec, status }: MachineConfigNode): boolean {
  return (spec.configImage ?? status?.configImage?.currentImage) !== undefined;
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

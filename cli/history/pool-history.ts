import { type ChangeId, changeOf } from '../../api/change-id.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { byCodeUnits } from '../../api/order.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { present } from '../../api/present.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { subjectOf } from '../../machineconfig/config-text.ts';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import type { ConfigChange } from '../../machineconfig/node-config.ts';
import { ownersOf } from '../../machineconfig/owners.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';
import { inMergeOrder } from '../../machineconfig/render.ts';
import { readableNodeConfig } from '../../predict/objects/readable-node-config.ts';
import { recordOf } from '../../rollout/pools/pool-record.ts';
import { isRenderedFor } from '../../rollout/rendering/pool-rendering.ts';

export interface HistoryInput {
  readonly pool: MachineConfigPool;
  /** Every MachineConfig of the cluster, including rendered ones. */
  readonly machineConfigs: readonly MachineConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  /** The operator's record of what the pool's nodes may run; absent where it can't be read. */
  readonly poolRevisions?: readonly PoolRevision[];
}

/** Something that a pool was assigned: an image, or a rendered config without an image. */
export interface HistoryEntry {
  /** RFC 3339: when the build finished, or the config was rendered. */
  readonly at: string;
  readonly config: string;
  /** Identifies the change in logs, events and traces. */
  readonly change: ChangeId;
  /** By digest. */
  readonly image?: string;
  readonly build?: string;
  /** The build method: Append, Relabel or Engine; Render for a config without an image. */
  readonly way: string;
  readonly result: 'Succeeded' | 'Failed' | 'Interrupted' | 'Building';
  /** It only labels an earlier image again, for a rollback to it. */
  readonly forRollback?: true;
  /** Why a build failed. */
  readonly message?: string;
  /** The changes on nodes since the config before; absent when one of the two no longer exists. */
  readonly changes?: readonly HistoryChange[];
  /** Whether it is the pool's target. */
  readonly wanted: boolean;
  /** The number of nodes that run it. */
  readonly nodes: number;
  /** The revision under which the operator recorded it; absent for what no node was ever assigned. */
  readonly revision?: AssignedRevision;
}

interface AssignedRevision {
  readonly number: number;
  /** RFC 3339: when the operator recorded it, just before it first assigned it to a node. */
  readonly at: string;
}

interface HistoryChange {
  readonly subject: string;
  readonly change: ConfigChange['change'];
  /** MachineConfigs of the pool that set the subject now. */
  readonly machineConfigs: readonly string[];
}

/** @returns what the pool was assigned, newest first. */
export function poolHistory(input: HistoryInput): readonly HistoryEntry[] {
  const { pool, machineConfigs, builds } = input;
  const rendered = machineConfigs.filter((config) => isRenderedFor(pool, config));
  const selected = inMergeOrder(selectedConfigs(pool, machineConfigs));
  const byName = new Map(rendered.map((config) => [config.metadata.name, config]));
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === pool.metadata.name);
  const built = new Set(own.map(({ spec }) => spec.machineConfig.name));
  const entries = [
    ...own.map((build) => entryOfBuild(build, input)),
    ...rendered
      .filter(({ metadata }) => !built.has(metadata.name))
      .map((config) => entryOfConfig(config, input)),
  ].toSorted((a, b) => (a.at === b.at ? byCodeUnits(a.config, b.config) : byCodeUnits(a.at, b.at)));
  return entries
    .map((entry, index) => {
      const before = entries
        .slice(0, index)
        .findLast(({ config, forRollback }) => config !== entry.config && forRollback === undefined)?.config;
      const isFirstOfConfig = entries.findIndex(({ config }) => config === entry.config) === index;
      const changes = isFirstOfConfig
        ? changesOf(byName.get(before ?? ''), byName.get(entry.config), selected)
        : [];
      return { ...entry, ...present({ changes, revision: revisionOf(entry, input) }) };
    })
    .toReversed();
}

type Entry = Omit<HistoryEntry, 'changes' | 'revision'>;

/** A config has several revisions without an image where its stock image changed: the latest counts. */
function revisionOf(
  { config, image }: Entry,
  { pool, poolRevisions = [] }: HistoryInput,
): AssignedRevision | undefined {
  const latest = recordOf(pool, poolRevisions).findLast(
    ({ spec }) => spec.machineConfig.name === config && spec.image === image,
  );
  if (latest === undefined) return undefined;
  return { number: latest.spec.revision, at: latest.metadata.creationTimestamp ?? '' };
}

function entryOfBuild(build: MachineOSBuild, { pool, machineConfigNodes }: HistoryInput): Entry {
  const { metadata, spec, status } = build;
  const image = status?.digestedImagePushSpec;
  const failed = status?.conditions?.find(({ type, status }) => type === 'Failed' && status === 'True');
  const config = spec.machineConfig.name;
  const isPools = pool.spec.configuration?.name === config;
  const isDesired = machineConfigNodes.some((node) => node.spec.configImage?.desiredImage === image);
  return {
    at: status?.buildEnd ?? status?.buildStart ?? metadata.creationTimestamp ?? '',
    config,
    change: changeOf(config),
    build: metadata.name,
    ...present({ image }),
    way: status?.builder?.imageBuilderType ?? 'Build',
    ...(metadata.annotations?.[annotations.forRollback] === 'true' ? { forRollback: true } : {}),
    result: resultOf(build),
    ...(failed === undefined || failed.message === '' ? {} : { message: failed.message }),
    wanted: isPools && image !== undefined && isDesired,
    nodes: machineConfigNodes.filter(
      (node) => image !== undefined && node.status?.configImage?.currentImage === image,
    ).length,
  };
}

function entryOfConfig({ metadata }: MachineConfig, { pool, machineConfigNodes }: HistoryInput): Entry {
  return {
    at: metadata.creationTimestamp ?? '',
    config: metadata.name,
    change: changeOf(metadata.name),
    way: 'Render',
    result: 'Succeeded',
    wanted: pool.spec.configuration?.name === metadata.name,
    nodes: machineConfigNodes.filter(
      ({ spec, status }) =>
        spec.pool.name === pool.metadata.name && status?.configVersion?.current === metadata.name,
    ).length,
  };
}

function resultOf({ status }: MachineOSBuild): HistoryEntry['result'] {
  const results = ['Succeeded', 'Failed', 'Interrupted'] as const;
  return results.find((type) => conditionIsTrue(status?.conditions, type)) ?? 'Building';
}

function changesOf(
  from: MachineConfig | undefined,
  to: MachineConfig | undefined,
  selected: readonly MachineConfig[],
): readonly HistoryChange[] | undefined {
  const [before, after] = [readableNodeConfig(from), readableNodeConfig(to)];
  if (before === undefined || after === undefined) return undefined;
  return diffNodeConfigs(before, after).map((change) => ({
    subject: subjectOf(change),
    change: change.change,
    machineConfigs: ownersOf(change, selected),
  }));
}

import { z } from 'zod';
import { BuildContents } from '../../api/build-contents.ts';
import { outcomeOf } from '../../api/build-outcome.ts';
import { changeOf } from '../../api/change-id.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { byCodeUnits } from '../../api/order.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { subjectOf } from '../../machineconfig/config-text.ts';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import { ownersOf } from '../../machineconfig/owners.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';
import { inMergeOrder } from '../../machineconfig/render.ts';
import { isNamedFor } from '../../machineconfig/rendered-name.ts';
import { readableNodeConfig } from '../../predict/objects/cluster-state.ts';
import { recordOf } from '../../rollout/pools/pool-record.ts';
import { isRenderedFor } from '../../rollout/rendering/pool-rendering.ts';
import { contentsOfBuild } from '../../view/build-contents.ts';
import { trueCondition } from '../../view/conditions.ts';

export interface HistoryInput {
  /** Of the pool. */
  readonly name: string;
  /** Undefined for a pool that was deleted. */
  readonly pool: MachineConfigPool | undefined;
  /** Every MachineConfig of the cluster, including rendered ones. */
  readonly machineConfigs: readonly MachineConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  /** The operator's record of what nodes may run; undefined where the user may not list it. */
  readonly poolRevisions: readonly PoolRevision[] | undefined;
}

/** What a pool was assigned, as `-o json` prints it: images, or rendered configs without an image. */
export const HistoryOutput = z.array(
  z.strictObject({
    /** RFC 3339: when the build finished, or the config was rendered. */
    at: z.string(),
    config: z.string(),
    /** Identifies the change in logs, events and traces. */
    change: z.string(),
    /** By digest. */
    image: z.string().optional(),
    build: z.string().optional(),
    /** The build method: Append, Relabel, Engine or PreBuilt; Render for a config without an image. */
    way: z.string(),
    /** It only labels an earlier image again, for a rollback to it. */
    forRollback: z.literal(true).optional(),
    result: z.enum(['Succeeded', 'Failed', 'Interrupted', 'Building']),
    /** Why a build failed. */
    message: z.string().optional(),
    /** The changes on nodes since the config before; absent when one of the two no longer exists. */
    changes: z
      .array(
        z.strictObject({
          subject: z.string(),
          change: z.enum(['added', 'changed', 'removed']),
          /** MachineConfigs of the pool that set the subject now. */
          machineConfigs: z.array(z.string()).readonly(),
        }),
      )
      .optional(),
    /** What is different inside the image; absent where its build recorded nothing. */
    contents: BuildContents.optional(),
    /** Whether it is the pool's target. */
    wanted: z.boolean(),
    /** The number of nodes that run it. */
    nodes: z.number(),
    /**
     * Under which the operator recorded it, just before it first assigned it to a node; absent for what was never
     * assigned.
     */
    revision: z.strictObject({ number: z.number(), at: z.string() }).optional(),
  }),
);
export type HistoryEntry = z.infer<typeof HistoryOutput>[number];

/**
 * Each revision of the operator's record is one entry, in the order of their numbers, and so is what no node was ever
 * assigned: builds that failed or go on, and configs that were rendered and nothing more.
 *
 * @returns what the pool was assigned, newest first.
 */
export function poolHistory(input: HistoryInput): readonly HistoryEntry[] {
  const { name, pool, machineConfigs } = input;
  const selected = pool === undefined ? [] : inMergeOrder(selectedConfigs(pool, machineConfigs));
  const byName = new Map(
    machineConfigs
      .filter((config) => isNamedFor(name, config))
      .map((config) => [config.metadata.name, config]),
  );
  const entries = [...recordedEntries(input), ...unrecordedEntries(input)]
    .toSorted((a, b) => byCodeUnits(a.since, b.since) || a.number - b.number)
    .map(({ entry }) => entry);
  return entries
    .map((entry, index) => {
      const before = entries
        .slice(0, index)
        .findLast(({ config, forRollback }) => config !== entry.config && forRollback === undefined)?.config;
      const isFirstOfConfig = entries.findIndex(({ config }) => config === entry.config) === index;
      const changes = isFirstOfConfig
        ? changesOf(byName.get(before ?? ''), byName.get(entry.config), selected)
        : [];
      return { ...entry, changes };
    })
    .toReversed();
}

/** @returns the history without what earlier pools of the name were assigned: a rollback can't go to that. */
export function rollbackHistory(
  input: HistoryInput & { readonly pool: MachineConfigPool },
): readonly HistoryEntry[] {
  const { pool, poolRevisions } = input;
  return poolHistory({ ...input, poolRevisions: poolRevisions && recordOf(pool, poolRevisions) });
}

type Entry = Omit<HistoryEntry, 'changes'>;

/** An entry with its place: revisions are in the order in which they were assigned, whenever their builds ended. */
interface Placed {
  /** RFC 3339 */
  readonly since: string;
  readonly number: number;
  readonly entry: Entry;
}

function recordedEntries(input: HistoryInput): readonly Placed[] {
  const { name, pool, builds, poolRevisions = [] } = input;
  const ofName = poolRevisions.filter(({ spec }) => spec.machineConfigPool.name === name);
  const own = pool === undefined ? ofName : recordOf(pool, poolRevisions);
  const isLatest = ({ spec }: PoolRevision) =>
    own.findLast((other) => sameTarget(other, { spec }))?.spec.revision === spec.revision;
  return ofName.map((revision) => {
    const { metadata, spec } = revision;
    const { creationTimestamp: since = '' } = metadata;
    const build = builds.find(
      ({ metadata, status }) =>
        metadata.name === spec.machineOSBuild?.name || isImage(status?.digestedImagePushSpec, spec.image),
    );
    const isOwn = own.includes(revision);
    const known = build === undefined ? entryOfRevision(revision) : entryOfBuild(build);
    const use = isOwn && isLatest(revision) ? useOf(spec.machineConfig.name, spec.image, input) : unused;
    const assigned = isOwn ? { revision: { number: spec.revision, at: since } } : {};
    return { since, number: spec.revision, entry: { ...known, ...use, ...assigned } };
  });
}

function unrecordedEntries(input: HistoryInput): readonly Placed[] {
  const { name, pool, machineConfigs, builds, poolRevisions = [] } = input;
  const record = poolRevisions.filter(({ spec }) => spec.machineConfigPool.name === name);
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === name);
  const known = new Set([...record, ...own].map(({ spec }) => spec.machineConfig.name));
  const isRecorded = ({ metadata, status }: MachineOSBuild) =>
    record.some(
      ({ spec }) =>
        spec.machineOSBuild?.name === metadata.name || isImage(status?.digestedImagePushSpec, spec.image),
    );
  const entries = [
    ...own
      .filter((build) => !isRecorded(build))
      .map((build) => ({
        ...entryOfBuild(build),
        ...useOf(build.spec.machineConfig.name, build.status?.digestedImagePushSpec ?? '', input),
      })),
    ...machineConfigs
      .filter((config) => (pool === undefined ? isNamedFor(name, config) : isRenderedFor(pool, config)))
      .filter(({ metadata }) => !known.has(metadata.name))
      .map(({ metadata: { name: config, creationTimestamp: at = '' } }) => ({
        ...rendered(config, at),
        ...useOf(config, undefined, input),
        wanted: pool?.spec.configuration?.name === config,
      })),
  ];
  return entries.map((entry) => ({ since: entry.at, number: Infinity, entry }));
}

function sameTarget(a: Pick<PoolRevision, 'spec'>, b: Pick<PoolRevision, 'spec'>): boolean {
  return a.spec.machineConfig.name === b.spec.machineConfig.name && a.spec.image === b.spec.image;
}

function isImage(built: string | undefined, recorded: string | undefined): boolean {
  return built !== undefined && built === recorded;
}

const unused = { wanted: false, nodes: 0 } as const;

/** @param image undefined in standard mode. @returns whether it is the pool's target, and how many nodes run it. */
function useOf(
  config: string,
  image: string | undefined,
  { name, pool, machineConfigNodes }: HistoryInput,
): Pick<Entry, 'wanted' | 'nodes'> {
  const members = machineConfigNodes.filter(({ spec }) => spec.pool.name === name);
  const isDesired = members.some(({ spec }) => spec.configImage?.desiredImage === image);
  const isRun = ({ status }: MachineConfigNode) =>
    image === undefined
      ? status?.mode !== 'Layered' && status?.configVersion?.current === config
      : status?.configImage?.currentImage === image;
  return {
    wanted: pool?.spec.configuration?.name === config && isDesired,
    nodes: members.filter(isRun).length,
  };
}

type Unplaced = Omit<Entry, 'wanted' | 'nodes'>;

/** Its build is gone. */
function entryOfRevision({ metadata, spec }: PoolRevision): Unplaced {
  const { image, machineOSBuild } = spec;
  const entry = rendered(spec.machineConfig.name, metadata.creationTimestamp ?? '');
  if (image === undefined) return entry;
  return { ...entry, image, build: machineOSBuild?.name, way: 'Build' };
}

function entryOfBuild(build: MachineOSBuild): Unplaced {
  const { metadata, spec, status } = build;
  const image = status?.digestedImagePushSpec;
  const failed = trueCondition(status?.conditions, 'Failed');
  const config = spec.machineConfig.name;
  return {
    at: status?.buildEnd ?? status?.buildStart ?? metadata.creationTimestamp ?? '',
    config,
    change: changeOf(config),
    build: metadata.name,
    image,
    way: status?.builder?.imageBuilderType ?? 'Build',
    forRollback: metadata.annotations?.[annotations.forRollback] === 'true' || undefined,
    result: outcomeOf(build) ?? 'Building',
    message: failed?.message || undefined,
    contents: contentsOfBuild(build),
  };
}

function rendered(config: string, at: string): Unplaced {
  return { at, config, change: changeOf(config), way: 'Render', result: 'Succeeded' };
}

function changesOf(
  from: MachineConfig | undefined,
  to: MachineConfig | undefined,
  selected: readonly MachineConfig[],
): HistoryEntry['changes'] {
  const [before, after] = [readableNodeConfig(from), readableNodeConfig(to)];
  if (before === undefined || after === undefined) return undefined;
  return diffNodeConfigs(before, after).map((change) => ({
    subject: subjectOf(change),
    change: change.change,
    machineConfigs: ownersOf(change, selected),
  }));
}

import { z } from 'zod';
import type { ConfigMap } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { PUSHED_IMAGES_CONFIG_MAP } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { by, byCodeUnits } from '../../api/order.ts';
import {
  type Digest,
  type DigestedPullspec,
  DigestSchema,
  digestInName,
  parseDigestedPullspec,
  repositoryOf,
} from '../../api/references.ts';
import { ownImages } from '../decide-prune.ts';

/** What the operator has recorded of the images of one MachineOSBuild, for the time when that object is gone. */
export interface PushedImages {
  readonly pool: string;
  /** A pool that was deleted and created again, or comes from a backup, is another one. */
  readonly poolUID: string;
  /** Host and repository: the pool's own, as its MachineOSConfig has it. */
  readonly repository: string;
  /** The Secret of the MachineOSConfig that images are pushed with; absent: none. */
  readonly pushSecret?: string | undefined;
  /** When the build was created, RFC 3339. */
  readonly created: string;
  /** The oldest first. */
  readonly digests: readonly Digest[];
}

/** By the name of the MachineOSBuild. Only the operator writes it (manifests/base/pushed-images-admission.yaml). */
export type PushedImagesRecord = ReadonlyMap<string, PushedImages>;

const Entry = z.object({
  pool: z.string().min(1),
  poolUID: z.string(),
  repository: z.string().regex(/^[A-Za-z0-9.:[\]-]+(\/[a-z0-9._-]+)+$/),
  pushSecret: z.string().min(1).exactOptional(),
  created: z.string(),
  digests: z.array(DigestSchema).min(1),
});

/** Of one build: as many as its status may name. The newest stay. */
const MOST_IMAGES = 100;
/** Of UTF-8, of names and entries: a ConfigMap holds 1 MiB. That is more than a thousand builds; the newest stay. */
const MOST_BYTES = 512 * 1024;

/** @returns the record as the ConfigMap has it; what can't be read is left out. */
export function readPushedImages(configMap: Pick<ConfigMap, 'data'> | undefined): PushedImagesRecord {
  const record = new Map<string, PushedImages>();
  for (const [name, text] of Object.entries(configMap?.data ?? {})) {
    const entry = readEntry(text);
    if (entry !== undefined) record.set(name, entry);
  }
  return record;
}

function readEntry(text: string): PushedImages | undefined {
  try {
    return Entry.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** @returns the ConfigMap of a record: the same record is the same bytes. */
export function recordConfigMap(record: PushedImagesRecord): NewObject<ConfigMap> {
  const data = Object.fromEntries(
    [...record].sort(by(([name]) => name)).map(([name, entry]) => [name, textOf(entry)]),
  );
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: PUSHED_IMAGES_CONFIG_MAP }, data };
}

function textOf({ pool, poolUID, repository, pushSecret, created, digests }: PushedImages): string {
  return JSON.stringify({ pool, poolUID, repository, pushSecret, created, digests });
}

/** What says whose images a build has pushed. */
export interface Owners {
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly pools: readonly Pick<MachineConfigPool, 'metadata'>[];
}

/**
 * Adds what builds have pushed. Repository and Secret are those of the pool's MachineOSConfig, which no builder writes:
 * a build that names another repository is not recorded, nor one whose MachineOSConfig was gone before the operator saw
 * it.
 *
 * What is recorded of a pool that is gone is given up: after a restore from a backup, pools and nodes may come later
 * than the record, and by then nobody says what the nodes run.
 *
 * @returns the record that is to be kept; of more builds than it may hold, the newest.
 */
export function withBuilds(
  record: PushedImagesRecord,
  builds: readonly MachineOSBuild[],
  owners: Owners,
): PushedImagesRecord {
  const exists = ({ pool, poolUID }: PushedImages) => uidOf(pool, owners) === poolUID;
  const all = new Map([...record].filter(([, entry]) => exists(entry)));
  for (const build of builds) {
    const { name } = build.metadata;
    const entry = entryOf(build, all.get(name), owners);
    if (entry !== undefined) all.set(name, entry);
  }
  return bounded(all);
}

/** @returns undefined where the pool doesn't exist. */
function uidOf(pool: string, { pools }: Owners): string | undefined {
  const found = pools.find(({ metadata }) => metadata.name === pool);
  return found && (found.metadata.uid ?? '');
}

function entryOf(
  build: MachineOSBuild,
  before: PushedImages | undefined,
  owners: Owners,
): PushedImages | undefined {
  const { metadata, spec, status } = build;
  const repository = repositoryOf(spec.renderedImagePushSpec);
  const pushed = [...ownImages(build), ...(status?.pushedImages ?? [])]
    .filter((image) => repositoryOf(image) === repository)
    .map(digestInName)
    .filter((digest) => digest !== undefined);
  if (pushed.length === 0) return before;
  const known = before?.repository === repository ? before : undefined;
  const owner = ownerOf(spec.machineOSConfig.name, repository, owners) ?? known;
  if (owner === undefined) return before;
  const { pool, poolUID, pushSecret } = owner;
  return {
    pool,
    poolUID,
    repository,
    pushSecret,
    created: metadata.creationTimestamp ?? '',
    digests: [...new Set([...(known?.digests ?? []), ...pushed])].slice(-MOST_IMAGES),
  };
}

/** @returns the pool whose MachineOSConfig names the repository, with its Secret; undefined if it names another one. */
function ownerOf(
  name: string,
  repository: string,
  owners: Owners,
): Pick<PushedImages, 'pool' | 'poolUID' | 'pushSecret'> | undefined {
  const config = owners.machineOSConfigs.find(({ metadata }) => metadata.name === name);
  if (config === undefined || repositoryOf(config.spec.renderedImagePushSpec) !== repository)
    return undefined;
  const pool = config.spec.machineConfigPool.name;
  const poolUID = uidOf(pool, owners);
  if (poolUID === undefined) return undefined;
  return { pool, poolUID, pushSecret: config.spec.renderedImagePushSecret?.name };
}

/** The oldest fall out, whether they still exist or not: which ones stay must not change from pass to pass. */
function bounded(record: ReadonlyMap<string, PushedImages>): PushedImagesRecord {
  const newestFirst = [...record].sort(
    ([a, { created: since }], [b, { created }]) => byCodeUnits(created, since) || byCodeUnits(a, b),
  );
  let bytes = 0;
  const kept = newestFirst.filter(([name, entry]) => {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(textOf(entry));
    return bytes <= MOST_BYTES;
  });
  return new Map(kept);
}

/** @returns the record without some images, and without builds that have none left. */
export function withoutImages(
  record: PushedImagesRecord,
  images: readonly DigestedPullspec[],
): PushedImagesRecord {
  const gone = new Set<string>(images);
  const rest = [...record].map(([name, entry]): [string, PushedImages] => [
    name,
    { ...entry, digests: entry.digests.filter((digest) => !gone.has(`${entry.repository}@${digest}`)) },
  ]);
  return new Map(rest.filter(([, { digests }]) => digests.length > 0));
}

/** @returns the images of an entry, by digest. */
export function imagesOfEntry({ repository, digests }: PushedImages): readonly DigestedPullspec[] {
  return digests.map((digest) => parseDigestedPullspec(`${repository}@${digest}`));
}

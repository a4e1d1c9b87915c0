import { type MachineOSBuild, pushedImages } from '../../api/machine-os-build.ts';
import { plural } from '../../api/plural.ts';
import { digestInName, repositoryOf } from '../../api/references.ts';
import { digestOfTag, isBuildTag } from '../../builder/shale-tags.ts';
import { parseReference } from '../../image/reference.ts';
import { listReferrers, manifestAt } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';
import type { PushedImagesRecord } from '../../opt-in/pushed-images/record.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { openRegistry, type RegistryTrial } from './check-registries.ts';
import { type Finding, findings } from './finding.ts';
import type { RegistryTarget } from './registry-targets.ts';

interface Recorded extends Pick<ObservedCluster, 'builds' | 'machineConfigNodes'> {
  /** What the operator deletes of MachineOSBuilds that were deleted, once nothing uses it. */
  readonly leftImages: PushedImagesRecord;
}

/** ms; tags of a registry that takes longer are not compared. */
const DEADLINE_MS = 30_000;
/** Tags that are looked up, and strays that are named, in one repository; more are only counted. */
const MAX_LOOKUPS = 200;
const MAX_NAMED = 5;

/**
 * Compares the repositories of the pools with what this cluster records: images that no build, and nothing else, names
 * are never deleted.
 *
 * @throws SecretError, ApiError, CommandError
 */
export async function findStrays(
  targets: readonly RegistryTarget[],
  cluster: Recorded,
  trial: RegistryTrial,
): Promise<Finding[]> {
  const byRepository = new Map(
    targets.flatMap((target) => (target.push === undefined ? [] : [[repositoryOf(target.push), target]])),
  );
  const checks = [...byRepository].map(([repository, target]) =>
    inRepository(repository, target, cluster, trial),
  );
  return (await Promise.all(checks)).flat();
}

async function inRepository(
  repository: string,
  target: RegistryTarget,
  cluster: Recorded,
  trial: RegistryTrial,
): Promise<Finding[]> {
  const { warning, ok } = findings(`registries, from ${trial.from}`);
  const signal = AbortSignal.any([trial.signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    const strays = await straysOf(await openRegistry(target, trial), repository, cluster, signal);
    if (strays.length === 0) return [ok(`${repository}: has no image that this cluster does not record`)];
    return [warning(describe(repository, strays), remedy(repository))];
  } catch (error) {
    trial.signal.throwIfAborted();
    if (!(error instanceof RegistryError || error instanceof ContentError || signal.aborted)) throw error;
    const why = signal.aborted ? `no answer within ${DEADLINE_MS / 1000} s` : (error as Error).message;
    return [
      warning(
        `${repository}: its tags can't be compared with what this cluster records: ${why}`,
        'nothing else depends on this; the account needs permission to list tags',
      ),
    ];
  }
}

/** An image that nothing in the cluster records. */
interface Stray {
  readonly digest: string;
  readonly tags: readonly string[];
  /** Number of artifacts that refer to it. */
  readonly attached: number;
}

async function straysOf(
  registry: RegistryClient,
  repository: string,
  cluster: Recorded,
  signal: AbortSignal,
): Promise<Stray[]> {
  const at = parseReference(repository);
  const tags = await registry.listTags(at, signal);
  const digests = new Map<string, string>();
  for (const tag of tags.filter(isBuildTag).slice(0, MAX_LOOKUPS)) {
    const manifest = await manifestAt(registry, { ...at, tag }, signal);
    if (manifest !== undefined) digests.set(tag, manifest.digest);
  }
  const strays: Stray[] = [];
  for (const [digest, named] of strayDigests({ repository, tags, digests }, cluster)) {
    const image = parseReference(`${repository}@${digest}`);
    const attached =
      image.digest === undefined ? [] : await listReferrers(registry, at, image.digest, signal);
    strays.push({ digest, tags: named, attached: attached.length });
  }
  return strays;
}

/**
 * Decides which images of a repository are strays. An image with a tag that Shale doesn't write is not a stray:
 * somebody else pushed it.
 *
 * @param registry.digests by tag, of the tags that name images.
 * @returns the digests, each with the tags that name it or what is about it.
 */
export function strayDigests(
  registry: {
    readonly repository: string;
    readonly tags: readonly string[];
    readonly digests: ReadonlyMap<string, string>;
  },
  { builds, machineConfigNodes, leftImages }: Recorded,
): ReadonlyMap<string, readonly string[]> {
  const { repository, tags, digests } = registry;
  const own = builds.filter(({ spec }) => repositoryOf(spec.renderedImagePushSpec) === repository);
  const ownTags = own.map(({ spec }) => spec.renderedImagePushSpec.slice(repository.length + 1));
  const isOfBuild = (tag: string) => ownTags.some((each) => tag === each || tag.startsWith(`${each}-`));
  const recorded = new Set<string | undefined>([
    ...builds.flatMap(imagesOf).map(digestInName),
    ...[...leftImages.values()].flatMap(({ digests }) => digests),
    ...machineConfigNodes.flatMap(({ spec, status }) => [
      digestInName(spec.configImage?.desiredImage),
      digestInName(status?.configImage?.currentImage),
    ]),
    ...[...digests].filter(([tag]) => isOfBuild(tag)).map(([, digest]) => digest),
  ]);
  const strays = new Map<string, string[]>();
  for (const tag of tags) {
    const hex = digestOfTag(tag);
    const digest = hex === undefined ? digests.get(tag) : `sha256:${hex}`;
    if (digest === undefined || recorded.has(digest)) continue;
    strays.set(digest, [...(strays.get(digest) ?? []), tag]);
  }
  return strays;
}

function imagesOf(build: MachineOSBuild): readonly (string | undefined)[] {
  const { status } = build;
  const instances = (status?.instances ?? []).flatMap(({ image, engineImage, baseRecord }) => [
    image,
    engineImage,
    baseRecord?.image,
  ]);
  const own = [status?.digestedImagePushSpec, status?.engineImage, status?.baseRecord?.image];
  return [...own, ...instances, ...pushedImages(build)];
}

function describe(repository: string, strays: readonly Stray[]): string {
  const named = strays.slice(0, MAX_NAMED).map(({ digest, tags, attached }) => {
    const about = attached === 0 ? '' : `, with ${plural(attached, 'artifact')} attached`;
    return `${digest} (${tags.join(', ')}${about})`;
  });
  const more = strays.length - named.length;
  const rest = more === 0 ? '' : `, and ${more} more`;
  return `${repository}: ${plural(strays.length, 'image')} not recorded by this cluster: ${named.join('; ')}${rest}`;
}

function remedy(repository: string): string {
  return `Shale does not delete them, because another cluster may push to this repository. If none does, delete each, and its tags that start with sha256-: skopeo delete docker://${repository}@DIGEST`;
}

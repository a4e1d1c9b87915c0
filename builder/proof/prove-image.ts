import type { MachineConfig } from '../../api/machine-config.ts';
import type { BaseRecord } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { imageLabels, SHALE_VERSION } from '../../api/names.ts';
import {
  type DigestedPullspec,
  parseDigest,
  parseDigestedPullspec,
  withoutTag,
} from '../../api/references.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';
import { describeImage } from '../../image/append.ts';
import { digestOf } from '../../image/digest.ts';
import { type Instance, imageIndex, indexEntryOf } from '../../image/image-index.ts';
import { parseManifest } from '../../image/manifest.ts';
import { byDigest, parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { formatObstacle } from '../../machineconfig/sources.ts';
import { engineSpecOf } from '../../predict/image/engine-spec.ts';
import { cleanSource, type ImageIdentity } from '../layer/build-facts.ts';
import { appendedLayer, appendedOptions } from '../layer/layer-content.ts';
import { imageRefusal, type LocatedImage } from './compare-image.ts';
import { engineBase, engineInputsRefusal } from './engine-base.ts';
import { transitionRefusal } from './judge-label.ts';

/** An image's claim to be a pool's, and what it has to be. */
export interface ImageToProve {
  /** By digest; an image or an index. */
  readonly image: Reference;
  readonly machineOSConfig: MachineOSConfig;
  /** The rendered config that the image has to have. */
  readonly rendered: MachineConfig;
  /** The base image that is requested, by digest. */
  readonly requestedBase: string;
  readonly inForce: PoliciesInForce;
  /** Rendered configs by name, from which the image's label has transitions. */
  readonly configs: (name: string) => MachineConfig | undefined;
  /** Public keys that nodes accept, by name; none if signing is disabled. */
  readonly signingKeys: Readonly<Record<string, string>>;
  /** Whether a base is recorded, for an image that a rollback holds: it may be on another than is requested now. */
  readonly isRecordedBase?: (image: string) => boolean;
  /** @returns what a base consists of, by its layers. `stock`: what it was made of, where commands made it. */
  readonly treeOf: (base: LocatedImage, stock: LocatedImage | undefined) => Promise<KnownTree>;
}

interface KnownTree {
  readonly tree: BaseContent;
  /** Where the registry has it; absent where the base has no layer, or the registry takes no records. */
  readonly record?: BaseRecord | undefined;
}

/** What was found out about one image by computing it again. */
export interface ProvenInstance {
  /** A GOARCH value. */
  readonly architecture: string;
  readonly image: DigestedPullspec;
  readonly baseImage: DigestedPullspec;
  /** What commands made of the base that was requested; absent where none ran. */
  readonly engineImage?: DigestedPullspec;
  readonly baseRecord?: BaseRecord;
  /** The label with the transitions, which were computed again. */
  readonly transitionLabel: string;
}

export type ComputedProof =
  | {
      readonly kind: 'proven';
      /** By digest. */
      readonly baseImage: DigestedPullspec;
      readonly isIndex: boolean;
      readonly instances: readonly ProvenInstance[];
    }
  /** `why`: what of the image is not what it has to be. */
  | { readonly kind: 'refused'; readonly why: string };

/** An index of Shale's has one image per architecture, and there are fewer of these. */
const MOST_IMAGES = 16;

/**
 * Computes an image again and compares it (docs/decisions/0002-images-are-computed-again.md). The builder, the key that
 * signed it and the registry are not trusted.
 *
 * @throws RegistryError, ContentError; UnstatedInputs while no key that nodes accept has signed what commands were
 *   given.
 */
export async function proveImage(
  client: RegistryClient,
  claim: ImageToProve,
  signal: AbortSignal,
): Promise<ComputedProof> {
  const { rendered, requestedBase, image } = claim;
  const parsedConfig = parseNodeConfig(rendered);
  if (!parsedConfig.ok)
    throw new Error(
      `MachineConfig ${rendered.metadata.name}: ${parsedConfig.problems.map(formatProblem).join('; ')}`,
    );
  const proving = { claim, client, config: parsedConfig.config };
  const { registry, repository } = image;
  const raw = await client.getManifest(image, signal);
  const parsed = parseManifest(raw.bytes, `${registry}/${repository}`);
  const locate = async (at: Reference): Promise<LocatedImage> => ({
    reference: at,
    // An image is for one architecture, so none has to be chosen.
    description: await describeImage(client, at, '', signal),
  });
  if (parsed.kind === 'image') {
    const proof = await proveOne(proving, await locate(image), signal);
    if (proof.kind === 'refused') return proof;
    const { instance } = proof;
    return { kind: 'proven', baseImage: instance.baseImage, isIndex: false, instances: [instance] };
  }
  const { manifests } = parsed.index;
  if (manifests.length === 0 || manifests.length > MOST_IMAGES)
    return refused(`its index has ${manifests.length} images; expected 1 to ${MOST_IMAGES}`);
  const instances: ProvenInstance[] = [];
  const entries: Instance[] = [];
  for (const { digest } of manifests) {
    const located = await locate({ registry, repository, digest });
    const proof = await proveOne(proving, located, signal);
    if (proof.kind === 'refused') return proof;
    instances.push(proof.instance);
    entries.push(indexEntryOf(located.description));
  }
  if (digestOf(imageIndex(entries).bytes) !== raw.digest)
    return refused('its index has another form than expected of its images');
  const baseImage = parseDigestedPullspec(withoutTag(requestedBase));
  return { kind: 'proven', baseImage, isIndex: true, instances };
}

/** What an image is compared with, and by what means. */
interface Proving {
  readonly claim: ImageToProve;
  readonly client: RegistryClient;
  readonly config: NodeConfig;
}

type OneProof =
  | { readonly kind: 'proven'; readonly instance: ProvenInstance }
  | { readonly kind: 'refused'; readonly why: string };

async function proveOne(proving: Proving, image: LocatedImage, signal: AbortSignal): Promise<OneProof> {
  const { claim, client, config } = proving;
  const { inForce, configs, rendered, requestedBase } = claim;
  const found = image.description.config;
  const { architecture } = found;
  const labels = found.config?.Labels ?? {};
  const chosen = await chooseBase(proving, { labels, architecture }, signal);
  if (chosen.kind === 'refused') return chosen;
  const { base, stock } = chosen;
  const hasPackages = stock !== undefined;
  const { tree, record } = await claim.treeOf(base, stock);
  const content = await appendedLayer(config, rendered, { tree, hasPackages });
  if (!content.ok)
    return refused(
      `no image can have its config: ${content.refusals.map((each) => formatObstacle(each, [])).join('; ')}`,
    );
  const baseImage = byDigest(base.reference, base.description.digest);
  const transitionLabel = labels[imageLabels.disruption] ?? '';
  const options = appendedOptions({
    ...identityOf(claim, found.created, labels),
    baseImage,
    disruption: transitionLabel,
    ...(stock === undefined
      ? { requestedBase }
      : { requestedBase: baseImage, stockImage: byDigest(stock.reference, stock.description.digest) }),
  });
  const { layer } = content;
  const expected = { base, layer, options, config: rendered.metadata.name };
  const subject = { config, base: baseImage, inForce, configs };
  const why =
    (await imageRefusal(client, image, expected, signal)) ??
    transitionRefusal(labels[imageLabels.disruption], subject);
  if (why !== undefined) return refused(`${why}${otherVersion(labels)}`);
  return {
    kind: 'proven',
    instance: {
      architecture,
      baseImage,
      transitionLabel,
      image: byDigest(image.reference, image.description.digest),
      ...(stock === undefined ? {} : { engineImage: baseImage }),
      ...(record === undefined ? {} : { baseRecord: record }),
    },
  };
}

type ChosenBase =
  | { readonly kind: 'chosen'; readonly base: LocatedImage; readonly stock?: LocatedImage }
  | { readonly kind: 'refused'; readonly why: string };

/** The base of an image is the one that was requested, or what commands of this pool made of it. */
async function chooseBase(
  { claim, client }: Proving,
  image: { readonly labels: Readonly<Record<string, string>>; readonly architecture: string },
  signal: AbortSignal,
): Promise<ChosenBase> {
  const { machineOSConfig, rendered, requestedBase, isRecordedBase } = claim;
  const { labels, architecture } = image;
  const reference = parseReference(requestedBase);
  const requested: LocatedImage = {
    reference,
    description: await describeImage(client, reference, architecture, signal),
  };
  const engineSpec =
    isRecordedBase === undefined ? engineSpecOf(machineOSConfig.spec, rendered, architecture) : undefined;
  const needsEngine =
    isRecordedBase === undefined ? engineSpec !== undefined : labels[imageLabels.stockImage] !== undefined;
  if (!needsEngine) {
    const names = [withoutTag(requestedBase), byDigest(reference, requested.description.digest)];
    if (isRecordedBase !== undefined && !names.some(isRecordedBase))
      return refused(`the record of the pool has no image of ${rendered.metadata.name} on ${requestedBase}`);
    return { kind: 'chosen', base: requested };
  }
  const engineImage = labels[imageLabels.baseImage] ?? '';
  const engineClaim = { ...claim, engineImage, architecture };
  const found = await engineBase(client, engineClaim, requested, signal);
  if (found.kind === 'refused') return found;
  const why =
    engineSpec !== undefined
      ? await engineInputsRefusal(client, engineSpec, engineClaim, signal)
      : isRecordedBase?.(engineImage) === true
        ? undefined
        : `the record of the pool has no image of ${rendered.metadata.name} on ${engineImage}`;
  return why === undefined ? { kind: 'chosen', base: found.image, stock: requested } : refused(why);
}

/** What only its builder knows is taken from the image: it moves no node and is no content. */
function identityOf(
  { machineOSConfig, rendered, inForce }: ImageToProve,
  created: unknown,
  labels: Readonly<Record<string, string>>,
): Omit<ImageIdentity, 'requestedBase' | 'baseImage' | 'stockImage' | 'disruption'> {
  return {
    pool: machineOSConfig.spec.machineConfigPool.name,
    renderedConfig: rendered.metadata.name,
    policyDigest: parseDigest(inForce.policyDigest),
    version: labels[imageLabels.version] ?? '',
    created: typeof created === 'string' ? created : '',
    source: cleanSource({
      url: labels['org.opencontainers.image.source'],
      revision: labels['org.opencontainers.image.revision'],
    }),
  };
}

/** Another version of Shale may lay out an image otherwise. */
function otherVersion(labels: Readonly<Record<string, string>>): string {
  const version = labels[imageLabels.version];
  return version === undefined || version === SHALE_VERSION
    ? ''
    : ` (Shale ${version} made it, and this is ${SHALE_VERSION}; have it built again)`;
}

function refused(why: string): { readonly kind: 'refused'; readonly why: string } {
  return { kind: 'refused', why };
}

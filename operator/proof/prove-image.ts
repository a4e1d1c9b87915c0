import type { Logger } from 'pino';
import type { BaseRecord } from '../../api/machine-os-build.ts';
import { imageLabels, SHALE_VERSION } from '../../api/names.ts';
import {
  isByDigest,
  parseDigest,
  parseDigestedPullspec,
  repositoryOf,
  withoutTag,
} from '../../api/references.ts';
import { cleanSource, type ImageIdentity } from '../../builder/attest/build-facts.ts';
import { appendedLayer, appendedOptions } from '../../builder/layer/appended-image.ts';
import { imageRefusal, type LocatedImage } from '../../builder/proof/compare-image.ts';
import { engineBase, engineInputsRefusal } from '../../builder/proof/engine-base.ts';
import { transitionRefusal } from '../../builder/proof/judge-label.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../../builder/secrets.ts';
import { renderedRegistries } from '../../builder/steps/make-image.ts';
import { keptTree } from '../../builder/steps/tree-of-base.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';
import { describeImage } from '../../image/append.ts';
import { baseRecordDigest } from '../../image/base/base-record.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { chainIds } from '../../image/base/read-base.ts';
import { byDigest } from '../../image/by-digest.ts';
import { digestOf } from '../../image/digest.ts';
import { type Instance, imageIndex, indexEntryOf } from '../../image/image-index.ts';
import { parseManifest } from '../../image/manifest.ts';
import { formatReference, parseReference, type Reference } from '../../image/reference.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { formatObstacle } from '../../machineconfig/sources.ts';
import { engineSpecOf } from '../../predict/image/engine-spec.ts';
import type { ImageClaim, ImageProof, ProveImage, ProvenImage } from '../../rollout/pools/image-proof.ts';

interface ProverOptions extends RegistryAccessOptions {
  readonly log: Logger;
}

/** An index of Shale's has one image per architecture, and there are fewer of these. */
const MOST_IMAGES = 16;

/**
 * Computes images again and compares them (docs/decisions/0002-images-are-computed-again.md). The registry and the
 * Secret are those that the MachineOSConfig names; the build says only where the image is, and which digest the tag of
 * the base had.
 */
export function imageProver(options: ProverOptions): ProveImage {
  const baseTrees = new BaseTrees({
    onReading: ({ reference }, layers, bytes) =>
      options.log.info(
        { base: formatReference(reference), layers, bytes },
        'reading the layers of a base image, once',
      ),
  });
  return async (claim, signal) => {
    const { spec } = claim.machineOSConfig;
    const secrets = {
      pool: spec.machineConfigPool.name,
      names: [spec.baseImagePullSecret?.name, spec.renderedImagePushSecret?.name],
    };
    const access = await readRegistryAccess(options, secrets, signal);
    const conf = renderedRegistries(claim.rendered);
    const client = createMirroredClient(access, { conf, own: parseReference(spec.renderedImagePushSpec) });
    return prove({ client, baseTrees, ...requestOf(claim) }, signal);
  };
}

/** What an image is compared with, and by what means. */
interface Proving {
  readonly claim: ImageClaim;
  readonly client: RegistryClient;
  readonly baseTrees: BaseTrees;
  readonly inForce: PoliciesInForce;
  readonly config: NodeConfig;
  /** By digest. */
  readonly requestedBase: string;
}

/** @throws Error where the operator itself doesn't know yet what the image has to be. */
function requestOf(claim: ImageClaim): Pick<Proving, 'claim' | 'inForce' | 'config' | 'requestedBase'> {
  const { build, rendered, inForce } = claim;
  const { metadata, spec } = build;
  if (inForce === undefined || inForce.policyDigest !== spec.policyDigest)
    throw new Error(
      `MachineOSBuild ${metadata.name} is of the disruption policies ${spec.policyDigest ?? 'none'}; those in force are ${inForce?.policyDigest ?? 'not recorded yet'}`,
    );
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok)
    throw new Error(
      `MachineConfig ${rendered.metadata.name}: ${parsed.problems.map(formatProblem).join('; ')}`,
    );
  return { claim, inForce, config: parsed.config, requestedBase: spec.baseImage ?? '' };
}

async function prove(proving: Proving, signal: AbortSignal): Promise<ImageProof> {
  const { claim, client, requestedBase } = proving;
  const { build, rendered, machineOSConfig, isHeld } = claim;
  const requested = rendered.spec.osImageURL || machineOSConfig.spec.baseImage;
  if (!isHeld && !requested) return refused('no base image is requested');
  if (!isByDigest(requestedBase))
    return refused(`MachineOSBuild ${build.metadata.name} doesn't name its base image by digest`);
  const reference = parseReference(build.status?.digestedImagePushSpec ?? '');
  const { registry, repository } = reference;
  const where = `${registry}/${repository}`;
  const raw = await client.getManifest(reference, signal);
  const parsed = parseManifest(raw.bytes, where);
  const locate = async (at: Reference): Promise<LocatedImage> => ({
    reference: at,
    // An image is for one architecture, so none has to be chosen.
    description: await describeImage(client, at, '', signal),
  });
  if (parsed.kind === 'image') return proveOne(proving, await locate(reference), signal);
  const { manifests } = parsed.index;
  if (manifests.length === 0 || manifests.length > MOST_IMAGES)
    return refused(`its index has ${manifests.length} images; expected 1 to ${MOST_IMAGES}`);
  const proofs: ProvenImage[] = [];
  const instances: Instance[] = [];
  for (const { digest } of manifests) {
    const image = await locate({ registry, repository, digest });
    const proof = await proveOne(proving, image, signal);
    if (proof.kind === 'refused') return proof;
    proofs.push(proof);
    instances.push(indexEntryOf(image.description));
  }
  if (digestOf(imageIndex(instances).bytes) !== raw.digest)
    return refused('its index has another form than expected of its images');
  return {
    kind: 'proven',
    baseImage: parseDigestedPullspec(withoutTag(requestedBase)),
    baseRecords: proofs.flatMap(({ baseRecords }) => baseRecords),
    engineImages: proofs.flatMap(({ engineImages }) => engineImages),
  };
}

async function proveOne(proving: Proving, image: LocatedImage, signal: AbortSignal): Promise<ImageProof> {
  const { claim, client, config, inForce } = proving;
  const found = image.description.config;
  const labels = found.config?.Labels ?? {};
  const chosen = await chooseBase(proving, { labels, architecture: found.architecture }, signal);
  if (chosen.kind === 'refused') return chosen;
  const { base, stock } = chosen;
  const hasPackages = stock !== undefined;
  const { tree, records } = await knownTree(proving, base, stock, signal);
  const content = await appendedLayer(config, claim.rendered, { tree, hasPackages });
  if (!content.ok)
    return refused(
      `no image can have its config: ${content.refusals.map((each) => formatObstacle(each, [])).join('; ')}`,
    );
  const baseImage = byDigest(base.reference, base.description.digest);
  const subject = { config, base: baseImage, inForce, configs: claim.configs };
  const disruption = labels[imageLabels.disruption];
  const options = appendedOptions({
    ...identityOf(proving, found.created, labels),
    ...{ baseImage, disruption: disruption ?? '' },
    ...(stock === undefined
      ? { requestedBase: proving.requestedBase }
      : { requestedBase: baseImage, stockImage: byDigest(stock.reference, stock.description.digest) }),
  });
  const { layer } = content;
  const expected = { base, layer, options, config: claim.rendered.metadata.name };
  const why = (await imageRefusal(client, image, expected, signal)) ?? transitionRefusal(disruption, subject);
  if (why !== undefined) return refused(`${why}${otherVersion(labels)}`);
  return {
    kind: 'proven',
    baseImage,
    baseRecords: records,
    engineImages: stock === undefined ? [] : [baseImage],
  };
}

type ChosenBase =
  | { readonly kind: 'chosen'; readonly base: LocatedImage; readonly stock?: LocatedImage }
  | { readonly kind: 'refused'; readonly why: string };

/** The base of an image is the one that was requested, or what commands of this pool made of it. */
async function chooseBase(
  proving: Proving,
  image: { readonly labels: Readonly<Record<string, string>>; readonly architecture: string },
  signal: AbortSignal,
): Promise<ChosenBase> {
  const { claim, client, requestedBase } = proving;
  const { machineOSConfig, rendered, isHeld } = claim;
  const { labels, architecture } = image;
  const reference = parseReference(requestedBase);
  const requested: LocatedImage = {
    reference,
    description: await describeImage(client, reference, architecture, signal),
  };
  const engineSpec = isHeld ? undefined : engineSpecOf(machineOSConfig.spec, rendered, architecture);
  const needsEngine = isHeld ? labels[imageLabels.stockImage] !== undefined : engineSpec !== undefined;
  if (!needsEngine) {
    const names = [withoutTag(requestedBase), byDigest(reference, requested.description.digest)];
    if (isHeld && !names.some((name) => isRecordedBase(claim, name)))
      return refused(`the record of the pool has no image of ${rendered.metadata.name} on ${requestedBase}`);
    return { kind: 'chosen', base: requested };
  }
  const engineImage = labels[imageLabels.baseImage] ?? '';
  const engineClaim = { ...claim, engineImage, requestedBase, architecture };
  const found = await engineBase(client, engineClaim, requested, signal);
  if (found.kind === 'refused') return found;
  const why =
    engineSpec !== undefined
      ? await engineInputsRefusal(client, engineSpec, engineClaim, signal)
      : isRecordedBase(claim, engineImage)
        ? undefined
        : `the record of the pool has no image of ${rendered.metadata.name} on ${engineImage}`;
  return why === undefined ? { kind: 'chosen', base: found.image, stock: requested } : refused(why);
}

/** What is labelled again for a rollback is on a base that the operator has recorded for the same config. */
function isRecordedBase({ record, rendered }: ImageClaim, image: string): boolean {
  return record.some(
    ({ spec: { machineConfig, baseImage, engineImages = [] } }) =>
      machineConfig.name === rendered.metadata.name && [baseImage, ...engineImages].includes(image),
  );
}

/** By the layers of the base, which this operator or an earlier one has read itself. */
async function knownTree(
  { claim, client, baseTrees }: Proving,
  base: LocatedImage,
  stock: LocatedImage | undefined,
  signal: AbortSignal,
) {
  const { renderedImagePushSpec } = claim.machineOSConfig.spec;
  const repository = repositoryOf(renderedImagePushSpec);
  const recorded = claim.record
    .flatMap(({ spec: { baseRecords = [] } }) => baseRecords)
    // Elsewhere other credentials may be needed.
    .filter(({ image }) => repositoryOf(image) === repository);
  const kept = recorded.map((record) => keptTree(client, record, signal));
  const tree = await baseTrees.treeOf(client, { ...base, stock: async () => stock }, kept, signal);
  const chainId = chainIds(base.description.config.rootfs.diff_ids).at(-1);
  const known = recorded.find(({ chainID }) => chainID === chainId);
  const records: readonly BaseRecord[] =
    chainId === undefined
      ? []
      : [
          known ?? {
            chainID: chainId,
            image: byDigest(parseReference(renderedImagePushSpec), baseRecordDigest(chainId, tree)),
          },
        ];
  return { tree, records };
}

/** What only the builder knows is taken from the image: it moves no node and is no content. */
function identityOf(
  { claim, inForce }: Proving,
  created: unknown,
  labels: Readonly<Record<string, string>>,
): Omit<ImageIdentity, 'requestedBase' | 'baseImage' | 'stockImage' | 'disruption'> {
  return {
    pool: claim.machineOSConfig.spec.machineConfigPool.name,
    renderedConfig: claim.rendered.metadata.name,
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

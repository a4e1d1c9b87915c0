import type { Logger } from 'pino';
import { isByDigest, repositoryOf } from '../../api/references.ts';
import type { LocatedImage } from '../../builder/proof/compare-image.ts';
import { type ImageToProve, proveImage } from '../../builder/proof/prove-image.ts';
import { renderedRegistries } from '../../builder/rendered-registries.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../../builder/secrets.ts';
import { keptTree } from '../../builder/steps/tree-of-base.ts';
import { baseRecordDigest } from '../../image/base/base-record.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { chainIds } from '../../image/base/read-base.ts';
import { byDigest, formatReference, parseReference } from '../../image/reference.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { ImageClaim, ImageProof, ProveImage } from '../../rollout/pools/image-proof.ts';

interface ProverOptions extends RegistryAccessOptions {
  readonly log: Logger;
}

/**
 * Proves images by what only the operator writes. The registry and the Secret are those that the MachineOSConfig names;
 * the build says only where the image is, and which digest the tag of the base had.
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
    return prove(claim, { client, baseTrees }, signal);
  };
}

interface ProvingMeans {
  readonly client: RegistryClient;
  readonly baseTrees: BaseTrees;
}

/** @throws Error where the operator itself doesn't know yet what the image has to be. */
async function prove(claim: ImageClaim, means: ProvingMeans, signal: AbortSignal): Promise<ImageProof> {
  const { build, machineOSConfig, rendered, inForce, configs, signingKeys, isRollback } = claim;
  const { metadata, spec, status } = build;
  if (inForce === undefined || inForce.policyDigest !== spec.policyDigest)
    throw new Error(
      `MachineOSBuild ${metadata.name} is of the disruption policies ${spec.policyDigest ?? 'none'}; those in force are ${inForce?.policyDigest ?? 'not recorded yet'}`,
    );
  const requested = rendered.spec.osImageURL || machineOSConfig.spec.baseImage;
  if (!isRollback && !requested) return { kind: 'refused', why: 'no base image is requested' };
  const requestedBase = spec.baseImage ?? '';
  if (!isByDigest(requestedBase)) {
    const why = `MachineOSBuild ${metadata.name} doesn't name its base image by digest`;
    return { kind: 'refused', why };
  }
  const proof = await proveImage(
    means.client,
    {
      image: parseReference(status?.digestedImagePushSpec ?? ''),
      machineOSConfig,
      rendered,
      requestedBase,
      inForce,
      configs,
      signingKeys,
      ...(isRollback ? { isRecordedBase: (image: string) => isRecordedBase(claim, image) } : {}),
      treeOf: (base, stock) => knownTree(claim, means, { base, stock }, signal),
    },
    signal,
  );
  if (proof.kind === 'refused') return proof;
  return {
    kind: 'proven',
    baseImage: proof.baseImage,
    baseRecords: proof.instances.flatMap(({ baseRecord }) => baseRecord ?? []),
    engineImages: proof.instances.flatMap(({ engineImage }) => engineImage ?? []),
  };
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
  { machineOSConfig, record }: ImageClaim,
  { client, baseTrees }: ProvingMeans,
  { base, stock }: { readonly base: LocatedImage; readonly stock: LocatedImage | undefined },
  signal: AbortSignal,
): ReturnType<ImageToProve['treeOf']> {
  const { renderedImagePushSpec } = machineOSConfig.spec;
  const repository = repositoryOf(renderedImagePushSpec);
  const recorded = record
    .flatMap(({ spec: { baseRecords = [] } }) => baseRecords)
    // Elsewhere other credentials may be needed.
    .filter(({ image }) => repositoryOf(image) === repository);
  const kept = recorded.map((each) => keptTree(client, each, signal));
  const tree = await baseTrees.treeOf(client, { ...base, stock: async () => stock }, kept, signal);
  const chainId = chainIds(base.description.config.rootfs.diff_ids).at(-1);
  if (chainId === undefined) return { tree };
  const known = recorded.find(({ chainID }) => chainID === chainId);
  const image = () => byDigest(parseReference(renderedImagePushSpec), baseRecordDigest(chainId, tree));
  return { tree, record: known ?? { chainID: chainId, image: image() } };
}

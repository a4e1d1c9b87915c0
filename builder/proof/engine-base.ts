import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { repositoryOf } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { type EngineInputs, type EngineSpec, engineInputsDigest } from '../../predict/image/engine-spec.ts';
import { engineImageByTag, engineImageTarget, statedInputs } from '../engine/find-engine-image.ts';
import { differingField, type LocatedImage } from './compare-image.ts';

/** What commands can do can't be computed again. So it is compared what they were given, as the builder signed it. */

interface EngineClaim {
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  /** Public keys that nodes accept, by name; none if signing is disabled. */
  readonly signingKeys: Readonly<Record<string, string>>;
  /** The engine's image, as the label of the image that is claimed names it. */
  readonly engineImage: string;
  /** By digest, as requested. */
  readonly requestedBase: string;
  readonly architecture: string;
}

/**
 * @param stock the base image.
 * @returns the image of a container engine as a base, or why it is not based on this base image, or not in this pool's
 *   repository.
 * @throws RegistryError, ContentError
 */
export async function engineBase(
  client: RegistryClient,
  { machineOSConfig, engineImage, architecture }: EngineClaim,
  stock: LocatedImage,
  signal: AbortSignal,
): Promise<
  { readonly kind: 'base'; readonly image: LocatedImage } | { readonly kind: 'refused'; readonly why: string }
> {
  const repository = repositoryOf(machineOSConfig.spec.renderedImagePushSpec);
  const reference = parseReference(engineImage);
  if (reference.digest === undefined || repositoryOf(engineImage) !== repository) {
    const why = `the container engine's image ${engineImage} is not in repository ${repository} by digest`;
    return { kind: 'refused', why };
  }
  const description = await describeImage(client, reference, architecture, signal);
  const { layers } = description.manifest;
  const { diff_ids: diffIds } = description.config.rootfs;
  const isOnStock =
    stock.description.manifest.layers.every(({ digest }, index) => layers[index]?.digest === digest) &&
    stock.description.config.rootfs.diff_ids.every((diffId, index) => diffIds[index] === diffId);
  return isOnStock
    ? { kind: 'base', image: { reference, description } }
    : {
        kind: 'refused',
        why: `the container engine's image ${engineImage} doesn't begin with the layers of ${byDigest(stock.reference, stock.description.digest)}`,
      };
}

/**
 * Compares what commands were given with what the pool requests of them.
 *
 * @returns why the engine's image does not match the request.
 * @throws RegistryError, ContentError; UnstatedInputs while no key that nodes accept has signed a statement about it.
 */
export async function engineInputsRefusal(
  client: RegistryClient,
  engineSpec: EngineSpec,
  claim: EngineClaim,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { machineOSConfig, rendered, signingKeys, engineImage, requestedBase, architecture } = claim;
  const { spec, metadata } = machineOSConfig;
  const request = {
    engineSpec,
    pool: spec.machineConfigPool.name,
    baseImage: requestedBase,
    pushSpec: spec.renderedImagePushSpec,
    rendered,
    architecture,
    rebuild: metadata.annotations?.[annotations.rebuild] ?? '',
  };
  const { inputs } = await engineImageTarget(client, request, signal);
  const reference = parseReference(engineImage);
  const { digest } = reference;
  if (digest === undefined) return `${engineImage} is not named by digest`;
  const keys = Object.values(signingKeys);
  if (keys.length === 0) {
    const is = await engineImageByTag(client, reference, inputs, signal);
    return is === undefined
      ? `the label of the container engine's image ${engineImage} doesn't name the inputs ${engineInputsDigest(inputs)}`
      : undefined;
  }
  const stated = (
    await Promise.all(keys.map((publicKey) => statedInputs(client, reference, { digest, publicKey }, signal)))
  ).flat();
  const [first] = stated;
  if (first === undefined) throw new UnstatedInputs(engineImage);
  const expected = stated.map((each) => ({ each, right: atStatedDigest(inputs, engineSpec, each) }));
  if (expected.some(({ each, right }) => canonicalJson(each) === canonicalJson(right))) return undefined;
  return difference(engineImage, first, atStatedDigest(inputs, engineSpec, first));
}

/** No key that nodes accept has signed what commands were given. */
export class UnstatedInputs extends Error {
  constructor(engineImage: string) {
    super(
      `no key that nodes accept has signed what the container engine's image ${engineImage} was built from`,
    );
    this.name = 'UnstatedInputs';
  }
}

/** Since the build the tag of the extensions image may have been moved: its digest then is what was signed. */
function atStatedDigest(
  inputs: EngineInputs,
  { extensionsImage }: EngineSpec,
  { extensionsImage: stated }: Readonly<Record<string, unknown>>,
): EngineInputs {
  const isOfTag =
    typeof stated === 'string' &&
    extensionsImage !== '' &&
    parseReference(extensionsImage).digest === undefined &&
    repositoryOf(stated) === repositoryOf(extensionsImage);
  return isOfTag ? { ...inputs, extensionsImage: stated } : inputs;
}

function difference(
  image: string,
  stated: Readonly<Record<string, unknown>>,
  expected: EngineInputs,
): string {
  const right: Readonly<Record<string, unknown>> = { ...expected };
  const field = differingField(stated, right);
  const [is, should] = [stated, right].map((of) => canonicalJson(of[field ?? ''] ?? null));
  return `the container engine's image ${image} was built with ${field} ${is}; expected ${should}`;
}

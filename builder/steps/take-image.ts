import type { BuildContents } from '../../api/build-contents.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { preBuiltImageProblem } from '../../api/pre-built-image.ts';
import { present } from '../../api/present.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';
import { formatTransition, parseTransitionLabel } from '../../disruption/transitions.ts';
import { byDigest, parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { RegistryError } from '../../image/registry/registry-error.ts';
import { asBuildFailure, BuildFailure } from '../build-failure.ts';
import { UnstatedInputs } from '../proof/engine-base.ts';
import { type ComputedProof, type ProvenInstance, proveImage } from '../proof/prove-image.ts';
import type { BuildResult } from '../status.ts';
import type { AppendInput } from './append-build.ts';
import type { StepRunner } from './build-trace.ts';
import { compareContents } from './compare-contents.ts';
import { builtImageFor, contentsOfBuilt } from './known-contents.ts';
import { type BaseKnowledge, treeOfBase } from './tree-of-base.ts';

/** An image that exists, and what it has to be. */
export interface TakeInput extends BaseKnowledge {
  /** As the annotation names it. */
  readonly preBuiltImage: string;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  /** By digest. */
  readonly baseImage: string;
  /** `host[:port]/repository:tag`, where a build would push. */
  readonly pushSpec: string;
  readonly inForce: PoliciesInForce;
  /** Rendered configs by name. */
  readonly configs: (name: string) => MachineConfig | undefined;
  /** GOARCH values that a build would make an image for. */
  readonly architectures: readonly string[];
  /** The build of the image that the pool has had so far. */
  readonly previousBuild?: Pick<MachineOSBuild, 'status'> | undefined;
  /** Of the cluster. */
  readonly seal: NonNullable<AppendInput['seal']>;
  readonly step: StepRunner;
}

/**
 * Takes an image that exists for the pool's first one, in place of a build: computes what a build would make, and
 * compares. Only then is the image given the build's tag, by which registries keep it, and the cluster's signature
 * (docs/decisions/0032-pre-built-images.md).
 *
 * @throws BuildFailure with the reason PreBuiltImageRefused that says what of the image is another.
 */
export async function takeImage(
  client: RegistryClient,
  input: TakeInput,
  signal: AbortSignal,
): Promise<BuildResult> {
  const { preBuiltImage, pushSpec, step } = input;
  const problem = preBuiltImageProblem(preBuiltImage, pushSpec);
  if (problem !== undefined)
    throw new BuildFailure('PreBuiltImageRefused', `Annotation ${annotations.preBuiltImage}: ${problem}`);
  try {
    const image = parseReference(preBuiltImage);
    const proof = await step('proof', () => proofOf(client, input, image, signal));
    if (proof.kind === 'refused') throw refusal(input, proof.why);
    const why = architectureRefusal(proof.instances, input) ?? engineRefusal(proof.instances, input);
    if (why !== undefined) throw refusal(input, why);
    await keep(client, input, proof, signal);
    const instances = [];
    for (const each of proof.instances)
      instances.push({ ...each, contents: await contentsChange(client, input, each, signal) });
    return resultOf(input, image, { ...proof, instances });
  } catch (error) {
    signal.throwIfAborted();
    throw asBuildFailure(error);
  }
}

type Proof = Extract<ComputedProof, { kind: 'proven' }>;

async function proofOf(
  client: RegistryClient,
  input: TakeInput,
  image: Reference,
  signal: AbortSignal,
): Promise<ComputedProof> {
  const { machineOSConfig, rendered, baseImage, inForce, configs, seal } = input;
  // If the image does not exist, the registry's response does not show which annotation named it.
  await client.getManifest(image, signal).catch((error: unknown) => {
    if (error instanceof RegistryError && error.status === 404) throw refusal(input, error.message);
    throw error;
  });
  return proveImage(
    client,
    {
      image,
      machineOSConfig,
      rendered,
      requestedBase: baseImage,
      inForce,
      configs,
      signingKeys: seal.publicKeys,
      treeOf: (base, stock) => {
        const { pushSpec, baseTrees, baseRecords } = input;
        const stockImage = stock && byDigest(stock.reference, stock.description.digest);
        const { architecture } = base.description.config;
        const known = { pushSpec, architecture, ...present({ baseTrees, baseRecords, stockImage }) };
        return treeOfBase(client, known, base, signal);
      },
    },
    signal,
  ).catch((error: unknown) => {
    if (error instanceof UnstatedInputs) throw refusal(input, error.message);
    throw error;
  });
}

function refusal({ preBuiltImage }: TakeInput, why: string): BuildFailure {
  return new BuildFailure(
    'PreBuiltImageRefused',
    `${preBuiltImage} is not the image that the builder would build: ${why}`,
  );
}

/** Nodes of an architecture that the image isn't for would have none. */
function architectureRefusal(
  instances: readonly ProvenInstance[],
  { architectures }: TakeInput,
): string | undefined {
  const names = (all: readonly string[]) => all.toSorted().join(' and ');
  const found = names(instances.map(({ architecture }) => architecture));
  const expected = names(architectures);
  return found === expected ? undefined : `it is for ${found}; expected ${expected}, as the pool's nodes are`;
}

/**
 * The result of commands can't be computed. Without a key there is only a label, which anybody with push access can
 * set.
 */
function engineRefusal(instances: readonly ProvenInstance[], { seal }: TakeInput): string | undefined {
  return seal.key === undefined && instances.some(({ engineImage }) => engineImage !== undefined)
    ? 'commands made its base, and without a signing key of the cluster nobody can say which'
    : undefined;
}

/** A client that pulls by an index verifies its signature first, then that of the image. */
async function keep(
  client: RegistryClient,
  { preBuiltImage, pushSpec, seal, step }: TakeInput,
  { isIndex, instances }: Proof,
  signal: AbortSignal,
): Promise<void> {
  const kept = [
    ...(isIndex
      ? instances.map(({ architecture, image }) => ({ image, at: `${pushSpec}-${architecture}` }))
      : []),
    { image: preBuiltImage, at: pushSpec },
  ].map(({ image, at }) => ({ image: parseReference(image), target: parseReference(at) }));
  for (const { image, target } of kept) {
    const { bytes, mediaType } = await client.getManifest(image, signal);
    const digest = await step('push', () => client.putManifest(target, { bytes, mediaType }, signal));
    if (seal.key !== undefined) await step('seal', () => seal.sign(client, target, digest, signal));
  }
}

/** The list of contents is optional: it is compared only if it is attached. */
async function contentsChange(
  client: RegistryClient,
  { baseTrees, previousBuild }: TakeInput,
  instance: ProvenInstance,
  signal: AbortSignal,
): Promise<BuildContents> {
  const before = previousBuild && builtImageFor(previousBuild, instance.architecture);
  return compareContents(
    await contentsOfBuilt(client, instance, baseTrees, signal),
    before && (await contentsOfBuilt(client, before, baseTrees, signal)),
    undefined,
  );
}

type TakenProof = Omit<Proof, 'instances'> & {
  readonly instances: readonly (ProvenInstance & { readonly contents: BuildContents })[];
};

function resultOf(
  { pushSpec, seal }: TakeInput,
  { digest }: Reference,
  { baseImage, isIndex, instances }: TakenProof,
): BuildResult {
  const [first] = instances;
  if (first === undefined || digest === undefined) throw new Error('nothing is proven');
  const { engineImage, baseRecord, contents } = first;
  return {
    image: byDigest(parseReference(pushSpec), digest),
    baseImage,
    way: 'PreBuilt',
    transitions: instances.flatMap(transitionsOf),
    ...(isIndex
      ? { instances: instances.map(({ transitionLabel: _, ...instance }) => instance) }
      : present({ engineImage, baseRecord, contents })),
    summary: `an image made beforehand, on ${baseImage}${seal.key === undefined ? '' : ', signed'}`,
    bytes: { sent: 0, mounted: 0 },
  };
}

function transitionsOf({ transitionLabel }: ProvenInstance): BuildResult['transitions'] {
  const parsed = parseTransitionLabel(transitionLabel);
  return parsed.ok ? parsed.label.transitions.map(formatTransition) : [];
}

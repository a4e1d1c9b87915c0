import { hasEnded, outcomeOf } from '../api/build-outcome.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { BuildFailureReason, MachineOSBuild } from '../api/machine-os-build.ts';
import type { BuildWaitingReason, MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { awaitedPreBuiltImage, preBuiltImageOf } from '../api/pre-built-image.ts';
import { otherOwnerMessage } from '../api/repository-owner.ts';
import type { ImageState } from '../disruption/transitions.ts';
import {
  BUILD_NAME_VERSION,
  type BuildInputs,
  buildName,
  rebuildOf,
} from '../predict/image/requested-image.ts';

/** What a decision about one MachineOSConfig depends on. */
export interface BuildObservation {
  readonly machineOSConfig: MachineOSConfig;
  readonly pool: MachineConfigPool | undefined;
  /** The pool to whom the repository belongs; absent if it is this pool's own (api/repository-owner.ts). */
  readonly repositoryOwner?: string | undefined;
  /** The rendered config that is the pool's target. */
  readonly rendered: MachineConfig | undefined;
  /** The base image by digest; absent if none is requested (predict/image/requested-image.ts). */
  readonly baseImage: string | undefined;
  /** Digest of the disruption policies in force; absent until the operator has recorded it. */
  readonly policyDigest: string | undefined;
  /** For pools whose nodes have not reported theirs; a GOARCH value. */
  readonly ownArchitecture: string;
  /** Every build of this MachineOSConfig. */
  readonly builds: readonly MachineOSBuild[];
  /** Whether this builder can run commands. */
  readonly hasEngine: boolean;
  /** Names of the builds that this process runs. */
  readonly running: ReadonlySet<string>;
  /** What nodes run or will run: the label of a new image lists a transition from each. */
  readonly states: readonly ImageState[];
  /** Whether the label of a successful build lacks a transition that a node needs (disruption/label-coverage.ts). */
  readonly fallsShort: (build: MachineOSBuild) => boolean;
  /** Whether nodes refuse the image of a successful build, because the key that signed it is no longer published. */
  readonly isDistrusted: (build: MachineOSBuild) => boolean;
}

export type BuildDecision =
  | { readonly kind: 'wait'; readonly reason: BuildWaitingReason; readonly why: string }
  | (Pick<BuildInputs, 'renderedConfig' | 'baseImage' | 'policyDigest' | 'architectures'> & {
      readonly kind: 'build';
      readonly name: string;
      /** What its label lists a transition from. */
      readonly transitionsFrom: readonly ImageState[];
      /** The image that becomes the pool's first one if it is what would be built. */
      readonly preBuiltImage?: string | undefined;
      /** The build whose image gets another label, if this is not the first of its inputs. */
      readonly relabels?: string | undefined;
      /** The existing object of that name, if any. */
      readonly build: MachineOSBuild | undefined;
      /** The next step for it. */
      readonly next: 'create' | 'start' | 'recreate' | 'none';
      /** Builds of older inputs that are not final. */
      readonly interrupt: readonly MachineOSBuild[];
    });

/**
 * Decides the builds of a MachineOSConfig: exactly one for the pool's rendered config, and none of older inputs still
 * running.
 *
 * The first image of a pool may be one that exists (the annotation pre-built-image): its build verifies it, and has the
 * name of the build that would make it, as with MCO. A build that was created for another image is recreated.
 *
 * A failed build stays failed until one of its inputs, or the rebuild annotation, changes; one that lacked an engine,
 * until the builder has one. An interrupted build whose inputs are requested again is recreated, because the conditions
 * of a final build can't change (MCO's rule). A build whose label falls short is followed by another of the same
 * inputs, which only labels its image again; so is one whose signature nodes no longer accept, because that signs the
 * image again.
 */
export function decideBuild(observation: BuildObservation): BuildDecision {
  const { machineOSConfig, pool, rendered, policyDigest, baseImage } = observation;
  const poolName = machineOSConfig.spec.machineConfigPool.name;
  const wait = (reason: BuildWaitingReason, why: string) => ({ kind: 'wait', reason, why }) as const;
  if (pool === undefined)
    return wait('PoolMissing', `Waiting for MachineConfigPool ${poolName}, which does not exist`);
  if (observation.repositoryOwner !== undefined) {
    const why = otherOwnerMessage(machineOSConfig, observation.repositoryOwner);
    return wait('RepositoryTaken', `Waiting for a repository of its own: ${why}`);
  }
  const renderedConfig = pool.spec.configuration?.name;
  if (renderedConfig === undefined)
    return wait(
      'RenderedConfigMissing',
      `Waiting for the first rendered config of MachineConfigPool ${poolName}`,
    );
  if (rendered === undefined)
    return wait('RenderedConfigMissing', `Waiting for MachineConfig ${renderedConfig}, which does not exist`);
  if (policyDigest === undefined)
    return wait('PoliciesUnknown', 'Waiting for the operator to record the disruption policies in force');
  if (baseImage === undefined) {
    return wait(
      'BaseImageMissing',
      `Waiting for a base image: set osImageURL in a MachineConfig of pool ${poolName}, or baseImage in the MachineOSConfig or in the layering switch`,
    );
  }
  const rebuild = rebuildOf(machineOSConfig);
  const architectures = architecturesOf(pool, observation.ownArchitecture);
  const image = { renderedConfig, baseImage, policyDigest, architectures };
  const inputs = { machineOSConfig, ...image, rebuild };
  const first = firstBuild(observation, { ...inputs, ownArchitecture: observation.ownArchitecture });
  const { name, build } = latestBuild(observation, inputs, first);
  const preBuiltImage = name === first.name ? firstImage(observation) : undefined;
  const isOfOther = build !== undefined && isForOtherImage(build, preBuiltImage);
  return {
    kind: 'build',
    name,
    ...image,
    transitionsFrom: observation.states,
    preBuiltImage,
    relabels: name === first.name ? undefined : first.name,
    build,
    next: isOfOther ? 'recreate' : nextStep(build, observation),
    interrupt: observation.builds.filter(
      (candidate) => (candidate.metadata.name !== name || isOfOther) && !hasEnded(candidate),
    ),
  };
}

/** @returns the image that a pool without one starts from; undefined where it is built. */
function firstImage({ builds, machineOSConfig }: BuildObservation): string | undefined {
  const hasImage = builds.some((build) => outcomeOf(build) === 'Succeeded');
  return hasImage ? undefined : awaitedPreBuiltImage(machineOSConfig);
}

/** What succeeded stays, whichever way its image came. */
function isForOtherImage(build: MachineOSBuild, requested: string | undefined): boolean {
  return outcomeOf(build) !== 'Succeeded' && preBuiltImageOf(build) !== requested;
}

interface NamedBuild {
  readonly name: string;
  /** Undefined if it doesn't exist. */
  readonly build: MachineOSBuild | undefined;
}

/** The build that made, or will make, the image of these inputs. */
function firstBuild({ builds }: BuildObservation, requested: RequestedImage): NamedBuild {
  const name = buildName(requested);
  const build = builds.find(({ metadata }) => metadata.name === name) ?? buildToTakeOver(builds, requested);
  return { name: build?.metadata.name ?? name, build };
}

/**
 * The first build, or one that labelled or signed its image again. The one that the MachineOSConfig names stays as long
 * as its label suffices: every other choice would be another target without a reason.
 */
function latestBuild(
  { builds, machineOSConfig, states, fallsShort, isDistrusted }: BuildObservation,
  inputs: BuildInputs,
  first: NamedBuild,
): NamedBuild {
  const sameImage = builds.filter(
    ({ metadata }) =>
      metadata.name === first.name || metadata.annotations?.[annotations.relabels] === first.name,
  );
  if (sameImage.length === 0) return first;
  const distrusted = sameImage.filter((build) => outcomeOf(build) === 'Succeeded' && isDistrusted(build));
  const usable = sameImage.filter(
    (build) => outcomeOf(build) !== 'Succeeded' || !(fallsShort(build) || distrusted.includes(build)),
  );
  const named = machineOSConfig.status?.machineOSBuild?.name;
  const build =
    usable.find(({ metadata }) => metadata.name === named) ??
    usable.find((candidate) => outcomeOf(candidate) === 'Succeeded') ??
    usable[0];
  if (build !== undefined) return { name: build.metadata.name, build };
  const name = buildName({ ...inputs, states, distrustedKeys: signersOf(distrusted) });
  return { name, build: builds.find(({ metadata }) => metadata.name === name) };
}

/** @returns the names of the keys that signed the images of builds, each once, sorted. */
export function signersOf(builds: readonly MachineOSBuild[]): readonly string[] {
  return [...new Set(builds.flatMap(({ status }) => status?.signingKey ?? []))].sort();
}

/**
 * A pool without nodes gets an image too, so that its first node finds one.
 *
 * @param own of the builder, as GOARCH.
 * @returns the architectures of a pool's image, as GOARCH, sorted.
 */
export function architecturesOf({ status }: MachineConfigPool, own: string): readonly string[] {
  const reported = status?.architectures ?? [];
  return reported.length === 0 ? [own] : [...new Set(reported)].sort();
}

/** @returns the next step for a build; `undefined` for one that doesn't exist. */
export function nextStep(
  build: MachineOSBuild | undefined,
  { running, hasEngine }: Pick<BuildObservation, 'running' | 'hasEngine'>,
): 'create' | 'start' | 'recreate' | 'none' {
  if (build === undefined) return 'create';
  const outcome = outcomeOf(build);
  switch (outcome) {
    case 'Interrupted':
      return 'recreate';
    case 'Succeeded':
      return 'none';
    case 'Failed':
      return hasEngine && lackedEngine(build) ? 'recreate' : 'none';
    case undefined:
      return running.has(build.metadata.name) ? 'none' : 'start';
  }
}

function lackedEngine({ status }: MachineOSBuild): boolean {
  const failed = status?.conditions?.find(({ type }) => type === 'Failed');
  return failed?.reason === ('NoEngine' satisfies BuildFailureReason);
}

interface RequestedImage extends BuildInputs {
  /** Older versions built for the architecture that they ran on. A GOARCH value. */
  readonly ownArchitecture: string;
}

/**
 * Another version of Shale may have given a build of the same inputs another name. Its image is equivalent, and
 * building it again would give every node another target.
 *
 * @returns the successful build of the MachineOSConfig, if none of its inputs has changed since; undefined if that is
 *   uncertain, and the image has to be built again.
 */
function buildToTakeOver(
  builds: readonly MachineOSBuild[],
  requested: RequestedImage,
): MachineOSBuild | undefined {
  const { metadata, status } = requested.machineOSConfig;
  // Without a generation it is unknown whether the spec is still the same.
  if (status?.observedGeneration === undefined || status.observedGeneration !== metadata.generation) return;
  const current = builds.find((build) => build.metadata.name === status.machineOSBuild?.name);
  return current !== undefined && isNamedOtherwise(current) && isOfSameInputs(current, requested)
    ? current
    : undefined;
}

/** A build named by this version's rule would have the requested name if its inputs were equal. */
function isNamedOtherwise({ metadata }: MachineOSBuild): boolean {
  return metadata.annotations?.[annotations.buildNameVersion] !== BUILD_NAME_VERSION;
}

function isOfSameInputs(build: MachineOSBuild, requested: RequestedImage): boolean {
  const { machineConfig, baseImage, policyDigest } = build.spec;
  const instances = build.status?.instances?.map(({ architecture }) => architecture);
  const architectures = instances ?? [requested.ownArchitecture];
  return (
    outcomeOf(build) === 'Succeeded' &&
    // The value of the annotation at the time of the build is unknown.
    requested.rebuild === undefined &&
    machineConfig.name === requested.renderedConfig &&
    baseImage === requested.baseImage &&
    policyDigest === requested.policyDigest &&
    architectures.toSorted().join() === requested.architectures.join()
  );
}

/**
 * Where a build's image is pushed: the repository of the MachineOSConfig with the build's name as tag, as MCO does, so
 * that no build overwrites another's tag.
 *
 * @param pushSpec `host[:port]/repository:tag`
 */
export function pushSpecOf(pushSpec: string, build: string): string {
  return `${pushSpec.slice(0, pushSpec.lastIndexOf(':'))}:${build}`;
}

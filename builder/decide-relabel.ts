import { parseRollback, type RollbackRequest } from '../api/annotation-requests.ts';
import { outcomeOf } from '../api/build-outcome.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import { byCreation } from '../api/order.ts';
import { buildName } from '../predict/image/requested-image.ts';
import { architecturesOf, type BuildDecision, type BuildObservation, nextStep, signersOf } from './decide.ts';

/** What a decision about the image that a pool is rolled back to depends on. */
export interface RelabelObservation
  extends Omit<BuildObservation, 'repositoryOwner' | 'rendered' | 'baseImage'> {
  /** Rendered configs by name. */
  readonly configs: (name: string) => MachineConfig | undefined;
}

/** A build that only labels the image of another build again. */
export type RelabelBuild = Extract<BuildDecision, { kind: 'build' }> & {
  /** The build of the image, whose base images are used as they are. */
  readonly sameAs: MachineOSBuild;
};

/**
 * Decides whether the image that a pool is rolled back to is labelled again: its label doesn't list what nodes run
 * now (docs/decisions/0012-rollback-labels-the-image-again.md), or nodes no longer accept the key that signed it.
 *
 * @returns undefined where no rollback names an image of a build that is still known, or one of its labels suffices.
 */
export function decideRelabel(observation: RelabelObservation): RelabelBuild | undefined {
  const { machineOSConfig, pool, policyDigest, builds, states, fallsShort, isDistrusted } = observation;
  const request = requestOf(pool);
  if (pool === undefined || request === undefined || policyDigest === undefined) return undefined;
  const sameAs = rolledBackTo(request, builds);
  const rendered = observation.configs(request.config);
  const { baseImage } = sameAs?.spec ?? {};
  if (sameAs === undefined || rendered === undefined || baseImage === undefined) return undefined;
  const architectures =
    sameAs.status?.instances?.map(({ architecture }) => architecture) ??
    architecturesOf(pool, observation.ownArchitecture);
  // An index instead of an image would be other content.
  if (architectures.length > 1 && sameAs.status?.instances === undefined) return undefined;
  const first = sameAs.metadata.annotations?.[annotations.relabels] ?? sameAs.metadata.name;
  const labelled = builds.filter((build) => build === sameAs || isLabelOf(build, first, sameAs));
  const succeeded = labelled.filter((build) => outcomeOf(build) === 'Succeeded');
  if (succeeded.some((build) => !fallsShort(build) && !isDistrusted(build))) return undefined;
  const distrustedKeys = signersOf(succeeded.filter(isDistrusted));
  const image = { renderedConfig: request.config, baseImage, policyDigest, architectures };
  const name = buildName({ machineOSConfig, ...image, states, distrustedKeys });
  const build = builds.find(({ metadata }) => metadata.name === name);
  return {
    kind: 'build',
    name,
    ...image,
    transitionsFrom: states,
    relabels: first,
    build,
    next: nextStep(build, observation),
    interrupt: [],
    sameAs,
  };
}

/** The operator reports an annotation that can't be read, and rolls nothing back. */
function requestOf(pool: MachineConfigPool | undefined): RollbackRequest | undefined {
  const text = pool?.metadata.annotations?.[annotations.rollback];
  if (text === undefined) return undefined;
  try {
    return parseRollback(text);
  } catch {
    return undefined;
  }
}

/** The build of the image that the request names; without an image, the newest of the config. */
function rolledBackTo(
  { config, image }: RollbackRequest,
  builds: readonly MachineOSBuild[],
): MachineOSBuild | undefined {
  return builds
    .filter(
      (build) =>
        outcomeOf(build) === 'Succeeded' &&
        build.spec.machineConfig.name === config &&
        (image === undefined || build.status?.digestedImagePushSpec === image),
    )
    .toSorted(byCreation)
    .at(-1);
}

/** Of a MachineOSConfig that was changed, the builds of one first build can have other base images. */
function isLabelOf({ metadata, status }: MachineOSBuild, first: string, sameAs: MachineOSBuild): boolean {
  const isOfFirst = metadata.name === first || metadata.annotations?.[annotations.relabels] === first;
  return isOfFirst && status?.baseImage === sameAs.status?.baseImage;
}

import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { buildName } from './build-name.ts';
import { isOver, outcomeOf } from './build-state.ts';
import { buildToTakeOver } from './take-over.ts';

/** What the builder sees of one MachineOSConfig when it decides. */
export interface BuildObservation {
  readonly machineOSConfig: MachineOSConfig;
  readonly pool: MachineConfigPool | undefined;
  /** The rendered config that the pool goes to. */
  readonly rendered: MachineConfig | undefined;
  /** The base image by digest; absent where none is asked for (requestedBase). */
  readonly baseImage: string | undefined;
  /** Digest of the disruption policies in force; absent until the operator has written it. */
  readonly policyDigest: string | undefined;
  /** Of an image for a pool whose nodes have not said theirs; in Go's words. */
  readonly ownArchitecture: string;
  /** Every build of this MachineOSConfig. */
  readonly builds: readonly MachineOSBuild[];
  /** Names of the builds that this process is at work on. */
  readonly running: ReadonlySet<string>;
}

export type BuildDecision =
  | { readonly kind: 'wait'; readonly why: string }
  | {
      readonly kind: 'build';
      readonly name: string;
      readonly renderedConfig: string;
      readonly baseImage: string;
      readonly policyDigest: string;
      /** What the image is made for. */
      readonly architectures: readonly string[];
      /** The object of that name, where there is one already. */
      readonly build: MachineOSBuild | undefined;
      /** What to do for it next. */
      readonly next: 'create' | 'start' | 'recreate' | 'none';
      /** Builds of older inputs that are not over yet. */
      readonly interrupt: readonly MachineOSBuild[];
    };

/**
 * Decides what a MachineOSConfig's builds should be: exactly one for the pool's rendered config, none of older inputs
 * still at work.
 *
 * A failed build stays failed until one of its inputs, or the rebuild annotation, changes; an interrupted one whose
 * inputs are wanted again is made anew, because conditions of a build that is over can't change (MCO's rule).
 */
export function decideBuild(seen: BuildObservation): BuildDecision {
  const { machineOSConfig, pool, rendered, policyDigest, baseImage } = seen;
  const poolName = machineOSConfig.spec.machineConfigPool.name;
  if (pool === undefined) return { kind: 'wait', why: `MachineConfigPool ${poolName} does not exist` };
  const renderedConfig = pool.spec.configuration?.name;
  if (renderedConfig === undefined)
    return { kind: 'wait', why: `MachineConfigPool ${poolName} has no rendered config yet` };
  if (rendered === undefined)
    return { kind: 'wait', why: `MachineConfig ${renderedConfig} does not exist yet` };
  if (policyDigest === undefined)
    return { kind: 'wait', why: 'the disruption policies in force are not known yet' };
  if (baseImage === undefined) {
    return {
      kind: 'wait',
      why: `no base image: set osImageURL in a MachineConfig of pool ${poolName}, or baseImage in the MachineOSConfig or the switch`,
    };
  }
  const rebuild = machineOSConfig.metadata.annotations?.[annotations.rebuild];
  const architectures = architecturesOf(pool, seen.ownArchitecture);
  const inputs = {
    machineOSConfig,
    renderedConfig,
    baseImage,
    policyDigest,
    architectures,
    ...(rebuild === undefined ? {} : { rebuild }),
  };
  const ownName = buildName(inputs);
  const build =
    seen.builds.find((candidate) => candidate.metadata.name === ownName) ??
    buildToTakeOver(seen.builds, { ...inputs, rebuild, ownArchitecture: seen.ownArchitecture });
  const name = build?.metadata.name ?? ownName;
  return {
    kind: 'build',
    name,
    renderedConfig,
    baseImage,
    policyDigest,
    architectures,
    build,
    next: nextStep(build, seen.running.has(name)),
    interrupt: seen.builds.filter((candidate) => candidate.metadata.name !== name && !isOver(candidate)),
  };
}

/** @returns the base image as it is asked for, by tag or digest: a MachineConfig's counts more. */
export function requestedBase(
  { spec }: MachineOSConfig,
  rendered: MachineConfig | undefined,
): string | undefined {
  return rendered?.spec.osImageURL || spec.baseImage || undefined;
}

/** A pool without nodes gets an image all the same: its first node finds one. */
function architecturesOf({ status }: MachineConfigPool, own: string): readonly string[] {
  const told = status?.architectures ?? [];
  return told.length === 0 ? [own] : [...new Set(told)].sort();
}

function nextStep(
  build: MachineOSBuild | undefined,
  running: boolean,
): 'create' | 'start' | 'recreate' | 'none' {
  if (build === undefined) return 'create';
  const outcome = outcomeOf(build);
  switch (outcome) {
    case 'Interrupted':
      return 'recreate';
    case 'Succeeded':
    case 'Failed':
      return 'none';
    case undefined:
      return running ? 'none' : 'start';
  }
}

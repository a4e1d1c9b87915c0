import { createHash } from 'node:crypto';
import type { MachineOSConfig } from '../api/machine-os-config.ts';

/** Everything that makes one image differ from another. */
export interface BuildInputs {
  readonly machineOSConfig: MachineOSConfig;
  readonly renderedConfig: string;
  /** The base image as it was asked for, by tag or digest. */
  readonly baseImage: string;
  readonly policyDigest: string;
  /** In Go's words, sorted. */
  readonly architectures: readonly string[];
  /** Value of the rebuild annotation: another value asks for another build of the same. */
  readonly rebuild?: string;
}

/** To be raised with every change of what a name is made of: take-over.ts. */
export const BUILD_NAME_VERSION = '2';

/** 32 hexadecimal digits, as many as MCO's names have: enough that two builds never share a name. */
const HASH_DIGITS = 32;

/**
 * The name of the MachineOSBuild of these inputs: `<pool>-<hash of all inputs>`, so that equal inputs are one build and
 * a changed input is another.
 */
export function buildName(inputs: BuildInputs): string {
  const { machineOSConfig, renderedConfig, baseImage, policyDigest, architectures, rebuild = '' } = inputs;
  const { spec } = machineOSConfig;
  const hashed = JSON.stringify([
    renderedConfig,
    baseImage,
    policyDigest,
    architectures,
    rebuild,
    spec.renderedImagePushSpec,
    [...(spec.containerFile ?? [])]
      .map(({ containerfileArch, content }) => [containerfileArch, content])
      .sort(([a = ''], [b = '']) => (a < b ? -1 : a > b ? 1 : 0)),
    [...(spec.packages ?? [])].sort(),
    (spec.buildArguments ?? []).map(({ name, value }) => `${name}=${value}`).sort(),
    (spec.buildSecrets ?? []).map(({ name }) => name).sort(),
  ]);
  return `${machineOSConfig.metadata.name}-${createHash('sha256').update(hashed).digest('hex').slice(0, HASH_DIGITS)}`;
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

import { createHash } from 'node:crypto';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { by } from '../../api/order.ts';
import type { ImageState } from '../../disruption/transitions.ts';

/**
 * The value of the rebuild annotation. As in MCO it may be empty, which is another value than none.
 *
 * @returns undefined without the annotation, which is no value that an annotation has.
 */
export function rebuildOf({ metadata }: Pick<MachineOSConfig, 'metadata'>): string | undefined {
  const value = metadata.annotations?.[annotations.rebuild];
  return value === '' ? EMPTY_VALUE : value;
}

/** '' stands for no annotation in the names of builds and in the inputs of what an engine built. */
const EMPTY_VALUE = '""';

/** The inputs that determine an image. */
export interface BuildInputs {
  readonly machineOSConfig: MachineOSConfig;
  readonly renderedConfig: string;
  /** The base image as requested, by tag or digest. */
  readonly baseImage: string;
  readonly policyDigest: string;
  /** GOARCH values, sorted. */
  readonly architectures: readonly string[];
  /** Value of the rebuild annotation: a changed value requests another build of the same inputs. */
  readonly rebuild?: string | undefined;
  /** What the label is to list, for a build that only labels an image of the same inputs again. */
  readonly states?: readonly ImageState[];
  /**
   * The keys that signed the image before and that nodes no longer accept: each needs another build, which signs again.
   */
  readonly distrustedKeys?: readonly string[];
}

/** To be raised with every change of what a name is made of; see buildToTakeOver. */
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
  const relabelled =
    inputs.states === undefined ? [] : [inputs.states.map(({ config, base }) => [config, base])];
  const signedAgain = inputs.distrustedKeys?.length ? [inputs.distrustedKeys] : [];
  const hashed = JSON.stringify([
    renderedConfig,
    baseImage,
    policyDigest,
    architectures,
    rebuild,
    spec.renderedImagePushSpec,
    [...(spec.containerFile ?? [])]
      .map(({ containerfileArch, content }) => [containerfileArch, content])
      .sort(by(([architecture = '']) => architecture)),
    [...(spec.packages ?? [])].sort(),
    (spec.buildArguments ?? []).map(({ name, value }) => `${name}=${value}`).sort(),
    (spec.buildSecrets ?? []).map(({ name }) => name).sort(),
    ...relabelled,
    ...signedAgain,
  ]);
  return `${machineOSConfig.metadata.name}-${createHash('sha256').update(hashed).digest('hex').slice(0, HASH_DIGITS)}`;
}

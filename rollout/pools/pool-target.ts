import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { BuildConditionType, MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig, MachineOSConfigConditionType } from '../../api/machine-os-config.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { byCreation } from '../../api/order.ts';
import { buildRefusal, type ImageCheck } from './admit-image.ts';
import type { NodeTarget } from './node-target.ts';
import { isRecordedBuild, type PoolRecord, recordedTarget } from './pool-record.ts';
import { hasCondition, recordedOfSameContent } from './same-content.ts';

/**
 * Whether the layering switch layers a pool (opt-in/switch-coverage.ts). `unreadable`: it has a setting that is not
 * valid, so the last one that was holds, and which pools that covered is not recorded.
 */
export type LayeringCoverage = 'covered' | 'excluded' | 'unreadable';

/** What a pool goes to. */
export type PoolTarget =
  /** Nothing is known to go to: nodes keep what they have. */
  | { readonly kind: 'none'; readonly why: string }
  | { readonly kind: 'standard'; readonly target: NodeTarget }
  | {
      readonly kind: 'layered';
      readonly target: NodeTarget & { readonly image: string };
      readonly build: string;
      /** Images whose content is the target's under other labels, the target among them. */
      readonly sameContent: ReadonlySet<string>;
    }
  /** The layered image is not built yet: nodes keep what they have; `initialTarget` is for one that has nothing. */
  | {
      readonly kind: 'awaiting-image';
      readonly config: string;
      readonly state: 'BuildPending' | 'Building' | 'BuildFailed';
      readonly why: string;
      readonly initialTarget: NodeTarget;
      /** A build whose image is recorded once the operator has computed the same one. */
      readonly candidate?: MachineOSBuild;
    }
  /** The pool was rolled back (rollback.ts) and stays there; `ownTarget`: what it goes to when the rollback ends. */
  | {
      readonly kind: 'rolled-back';
      readonly target: NodeTarget;
      /** Images whose content is the target's under other labels, the target among them; empty in standard mode. */
      readonly sameContent: ReadonlySet<string>;
      readonly why: string;
      readonly ownTarget: PoolTarget;
      /** Another label of the image is to come, by which nodes don't reboot: until then they keep what they have. */
      readonly awaits?: RelabelWait;
      /** Why nodes reboot to the image that could be rolled back live by another label. */
      readonly reboots?: string | undefined;
    };

/** What a pool that is rolled back waits for. */
export interface RelabelWait {
  readonly why: string;
  /** ms since the epoch: when it waits no longer, and nodes reboot. */
  readonly until: number;
}

/** @returns the rendered config that a pool goes to; undefined where nothing is known to go to. */
export function configOf(target: PoolTarget): string | undefined {
  switch (target.kind) {
    case 'none':
      return undefined;
    case 'awaiting-image':
      return target.config;
    case 'standard':
    case 'layered':
    case 'rolled-back':
      return target.target.config;
  }
}

/** What the builds of a pool and their images say. */
export interface BuiltImages {
  /** Every MachineOSBuild of the pool's MachineOSConfig. */
  readonly builds: readonly MachineOSBuild[];
  /** Digest of the disruption policies in force. */
  readonly policyDigest: string | undefined;
  /** What the check of the image of a build that is not recorded found; undefined before it is checked. */
  readonly checkOf: (build: MachineOSBuild) => ImageCheck | undefined;
  /**
   * The rendered configs that nodes run and from which the label of the build's image has no transition under the
   * policies in force, although one would cost less than a reboot (disruption/label-coverage.ts).
   */
  readonly unlisted: (build: MachineOSBuild) => readonly string[];
}

export interface PoolTargetInputs {
  readonly pool: MachineConfigPool;
  /** The MachineConfig that `pool.spec.configuration.name` names, where it exists. */
  readonly rendered: MachineConfig | undefined;
  /** The pool's MachineOSConfig: a pool that has one is layered. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  /** Another pool, to whom the repository belongs that the MachineOSConfig names. */
  readonly repositoryOwner?: string | undefined;
  /** A pool that the switch covers is layered from the start: its MachineOSConfig is about to be created. */
  readonly coverage: LayeringCoverage;
  /** Asks whether a node of the pool runs an image. */
  readonly hasImages: () => boolean;
  /** What the pool's nodes may run. */
  readonly record: PoolRecord;
  readonly images: BuiltImages;
}

/**
 * Decides what a pool's nodes should run.
 *
 * Only an image of the pool's record is a target: before that, the pool waits until the operator has checked and
 * recorded it. An image counts only when it was built for the pool's rendered config and states transitions by the
 * policies in force: with others in force the daemon would have to take Reboot for everything, so the pool waits for
 * the relabelled image instead. The same holds where the label has no transition from what nodes run: it was labelled
 * before they ran it.
 */
export function poolTarget(inputs: PoolTargetInputs): PoolTarget {
  const { pool, rendered, machineOSConfig } = inputs;
  const config = pool.spec.configuration?.name;
  if (config === undefined || config === '') return { kind: 'none', why: notRenderedBecause(pool) };
  if (rendered === undefined) return { kind: 'none', why: `MachineConfig ${config} does not exist` };
  const standard = standardTarget(config, rendered);
  const { record, images } = inputs;
  const initialTarget = lastImage(record) ?? standard;
  if (machineOSConfig === undefined) {
    const why = awaitedConfig(inputs);
    return why === undefined
      ? { kind: 'standard', target: standard }
      : { kind: 'awaiting-image', config, state: 'BuildPending', why, initialTarget };
  }

  const build = matchingBuild(inputs, config);
  const image = build?.status?.digestedImagePushSpec;
  if (build === undefined || image === undefined || !hasCondition(build, 'Succeeded'))
    return { kind: 'awaiting-image', config, ...awaited(build, machineOSConfig, config), initialTarget };
  const unlisted = images.unlisted(build);
  if (unlisted.length > 0) {
    const why = `the image of MachineOSBuild ${build.metadata.name} is to be labelled again: its label has no transition from ${unlisted.join(' and ')}, which nodes run`;
    return { kind: 'awaiting-image', config, state: 'BuildPending', why, initialTarget };
  }
  if (!isRecordedBuild(record, build)) {
    const { repositoryOwner } = inputs;
    const refusal = buildRefusal(build, { machineOSConfig, repositoryOwner, rendered });
    const check = refusal === undefined ? images.checkOf(build) : { kind: 'refused' as const, why: refusal };
    return { kind: 'awaiting-image', config, ...unrecorded(build, image, check), initialTarget };
  }
  const sameContent = recordedOfSameContent(images.builds, build, record);
  return { kind: 'layered', target: { config, image }, build: build.metadata.name, sameContent };
}

/**
 * A pool that is created again under the switch has no MachineOSConfig for seconds. Standard mode would cost each of
 * its nodes a reboot there and one back.
 *
 * @returns why a pool without a MachineOSConfig waits for one; undefined where it is to be in standard mode.
 */
function awaitedConfig({ pool, coverage, hasImages }: PoolTargetInputs): string | undefined {
  const { name } = pool.metadata;
  switch (coverage) {
    case 'covered':
      return `MachineOSConfig ${name} does not exist yet; the layering switch covers the pool, so the operator is about to create it`;
    case 'excluded':
      return undefined;
    case 'unreadable':
      return hasImages()
        ? `MachineOSConfig ${name} does not exist, nodes run images, and the layering switch (ConfigMap ${SWITCH_CONFIG_MAP}) has a setting that is not valid, so it is unknown whether it covers the pool; fix the ConfigMap`
        : undefined;
  }
}

function notRenderedBecause({ status }: MachineConfigPool): string {
  const failed = status?.conditions?.find(({ type }) => type === 'RenderDegraded');
  const why = failed?.status === 'True' ? `: ${failed.message}` : '';
  return `no configuration is rendered yet${why}`;
}

/**
 * What one node of a pool should run.
 *
 * @param node undefined for a node that has no MachineConfigNode yet.
 * @returns undefined when the node keeps what it has.
 */
export function nodeTarget(pool: PoolTarget, node: MachineConfigNode | undefined): NodeTarget | undefined {
  switch (pool.kind) {
    case 'none':
      return undefined;
    case 'standard':
      return pool.target;
    case 'awaiting-image':
      return node === undefined ? pool.initialTarget : undefined;
    case 'layered':
      return runningSame(pool, node) ?? pool.target;
    case 'rolled-back':
      // A node that has nothing yet reboots under either label.
      return (
        runningSame(pool, node) ?? (node === undefined || pool.awaits === undefined ? pool.target : undefined)
      );
  }
}

/** A relabelled image is the same system under another name: nothing is won by moving a node to it. */
function runningSame(
  { target: { config }, sameContent }: PoolTarget & { readonly kind: 'layered' | 'rolled-back' },
  node: MachineConfigNode | undefined,
): NodeTarget | undefined {
  const { mode, configVersion, configImage } = node?.status ?? {};
  const image = configImage?.currentImage;
  const runsIt =
    mode === 'Layered' && configVersion?.current === config && image !== undefined && sameContent.has(image);
  return runsIt ? { config, image } : undefined;
}

/** @returns the target of standard mode by a rendered config. */
export function standardTarget(config: string, rendered: MachineConfig): NodeTarget {
  const osImage = rendered.spec.osImageURL;
  return osImage === undefined || osImage === '' ? { config } : { config, osImage };
}

/**
 * The newest build of the rendered config under the policies in force; the one the builder names goes before others.
 */
function matchingBuild(
  { images: { builds, policyDigest }, machineOSConfig }: PoolTargetInputs,
  config: string,
): MachineOSBuild | undefined {
  const fitting = builds.filter(
    ({ spec, metadata }) =>
      spec.machineConfig.name === config &&
      metadata.deletionTimestamp === undefined &&
      (spec.policyDigest === undefined || policyDigest === undefined || spec.policyDigest === policyDigest),
  );
  const named = machineOSConfig?.status?.machineOSBuild?.name;
  return fitting.find(({ metadata }) => metadata.name === named) ?? fitting.toSorted(byCreation).at(-1);
}

function awaited(
  build: MachineOSBuild | undefined,
  machineOSConfig: MachineOSConfig,
  config: string,
): { state: 'BuildPending' | 'Building' | 'BuildFailed'; why: string } {
  const failure = failureOfBuilder(machineOSConfig);
  if (failure !== undefined) return { state: 'BuildFailed', why: failure };
  if (build === undefined) {
    return {
      state: 'BuildPending',
      why: `no build of ${config} yet: ${noBuildBecause(machineOSConfig)}`,
    };
  }
  const { name } = build.metadata;
  const messageOf = (type: BuildConditionType) => {
    const condition = build.status?.conditions?.find((candidate) => candidate.type === type);
    return condition === undefined || condition.message === '' ? '' : `: ${condition.message}`;
  };
  if (hasCondition(build, 'Failed'))
    return { state: 'BuildFailed', why: `MachineOSBuild ${name} failed${messageOf('Failed')}` };
  if (hasCondition(build, 'Interrupted'))
    return { state: 'BuildPending', why: `MachineOSBuild ${name} was interrupted` };
  if (hasCondition(build, 'Building'))
    return { state: 'Building', why: `MachineOSBuild ${name} is running${messageOf('Building')}` };
  return { state: 'BuildPending', why: `MachineOSBuild ${name} has not started` };
}

/** The builder reports what it can't do, if it is about more than a moment. */
function failureOfBuilder({ status }: MachineOSConfig): string | undefined {
  const failing = status?.conditions?.find(({ type }) => type === STEPS_FAILING);
  return failing?.status === 'True' ? `the Machine OS Builder can't go on: ${failing.message}` : undefined;
}

/** The builder reports what it waits for. */
function noBuildBecause({ metadata, status }: MachineOSConfig): string {
  const waiting = status?.conditions?.find(({ type }) => type === BUILD_WAITING);
  return waiting?.status === 'True'
    ? waiting.message
    : `the Machine OS Builder has not created it for MachineOSConfig ${metadata.name}; it may be starting`;
}

const BUILD_WAITING: MachineOSConfigConditionType = 'BuildWaiting';
const STEPS_FAILING: MachineOSConfigConditionType = 'StepsFailing';

/** An image that is not recorded is no target, whatever the status of its build says. */
function unrecorded(
  build: MachineOSBuild,
  image: string,
  check: ImageCheck | undefined,
): Pick<Extract<PoolTarget, { kind: 'awaiting-image' }>, 'state' | 'why' | 'candidate'> {
  const { name } = build.metadata;
  if (check?.kind === 'refused')
    return { state: 'BuildFailed', why: `the image of MachineOSBuild ${name} is refused: ${check.why}` };
  const why = `${image} of MachineOSBuild ${name} is being compared with what the MachineConfigs say`;
  return {
    state: 'Building',
    why: check === undefined ? why : `${why}: ${check.why}`,
    candidate: build,
  };
}

/** The newest image of any rendering: what the pool's other nodes most likely run. */
function lastImage(record: PoolRecord): NodeTarget | undefined {
  return record.map(recordedTarget).findLast(({ image }) => image !== undefined);
}

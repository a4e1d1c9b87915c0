import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { BuildConditionType, MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { byCodeUnits } from '../../api/order.ts';

/** What one node should run: `image` present means layered, absent means standard mode. */
export interface NodeTarget {
  readonly config: string;
  /** The layered image by digest. */
  readonly image?: string;
  /** The stock image of standard mode, where a MachineConfig names one. */
  readonly osImage?: string;
}

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
  /** The layered image is not built yet: nodes keep what they have; `newcomer` is for one that has nothing. */
  | {
      readonly kind: 'awaiting-image';
      readonly config: string;
      readonly state: 'BuildPending' | 'Building' | 'BuildFailed';
      readonly why: string;
      readonly newcomer: NodeTarget;
    }
  /** The pool was rolled back (rollback.ts) and stays there; `ownTarget`: what it goes to when the hold ends. */
  | {
      readonly kind: 'held';
      readonly target: NodeTarget;
      readonly why: string;
      readonly ownTarget: PoolTarget;
    };

/** @returns the rendered config that a pool goes to; undefined where nothing is known to go to. */
export function configOf(target: PoolTarget): string | undefined {
  switch (target.kind) {
    case 'none':
      return undefined;
    case 'awaiting-image':
      return target.config;
    case 'standard':
    case 'layered':
    case 'held':
      return target.target.config;
  }
}

export interface PoolTargetInputs {
  readonly pool: MachineConfigPool;
  /** The MachineConfig that `pool.spec.configuration.name` names, where it exists. */
  readonly rendered: MachineConfig | undefined;
  /** The pool's MachineOSConfig: its presence is what makes the pool layered. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  /** Every MachineOSBuild of that MachineOSConfig. */
  readonly builds: readonly MachineOSBuild[];
  /** Digest of the disruption policies in force. */
  readonly policyDigest: string | undefined;
}

/**
 * Decides what a pool's nodes should run.
 *
 * An image counts only when it was built for the pool's rendered config and states transitions by the policies in
 * force: with others in force the daemon would have to take Reboot for everything, so the pool waits for the relabelled
 * image instead.
 */
export function poolTarget(inputs: PoolTargetInputs): PoolTarget {
  const { pool, rendered, machineOSConfig } = inputs;
  const config = pool.spec.configuration?.name;
  if (config === undefined || config === '') return { kind: 'none', why: 'no configuration is rendered yet' };
  if (rendered === undefined) return { kind: 'none', why: `MachineConfig ${config} does not exist` };
  const standard = standardTarget(config, rendered);
  if (machineOSConfig === undefined) return { kind: 'standard', target: standard };

  const build = matchingBuild(inputs, config);
  const image = build?.status?.digestedImagePushSpec;
  if (build !== undefined && image !== undefined && hasCondition(build, 'Succeeded')) {
    return {
      kind: 'layered',
      target: { config, image },
      build: build.metadata.name,
      sameContent: imagesOfSameContent(inputs.builds, build, image),
    };
  }
  return {
    kind: 'awaiting-image',
    config,
    ...awaited(build, machineOSConfig, config),
    newcomer: lastImage(inputs.builds) ?? standard,
  };
}

/** @returns the target of standard mode by a rendered config. */
export function standardTarget(config: string, rendered: MachineConfig): NodeTarget {
  const osImage = rendered.spec.osImageURL;
  return osImage === undefined || osImage === '' ? { config } : { config, osImage };
}

/** The newest build of the rendered config under the policies in force; the one the builder names goes before others. */
function matchingBuild(inputs: PoolTargetInputs, config: string): MachineOSBuild | undefined {
  const fitting = inputs.builds.filter(
    ({ spec, metadata }) =>
      spec.machineConfig.name === config &&
      metadata.deletionTimestamp === undefined &&
      (spec.policyDigest === undefined ||
        inputs.policyDigest === undefined ||
        spec.policyDigest === inputs.policyDigest),
  );
  const named = inputs.machineOSConfig?.status?.machineOSBuild?.name;
  return fitting.find(({ metadata }) => metadata.name === named) ?? fitting.toSorted(oldestFirst).at(-1);
}

function awaited(
  build: MachineOSBuild | undefined,
  machineOSConfig: MachineOSConfig,
  config: string,
): { state: 'BuildPending' | 'Building' | 'BuildFailed'; why: string } {
  if (build === undefined) {
    return {
      state: 'BuildPending',
      why: `no build of ${config} for MachineOSConfig ${machineOSConfig.metadata.name} yet`,
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

/** The newest image of any rendering: what the pool's other nodes most likely run. */
function lastImage(builds: readonly MachineOSBuild[]): NodeTarget | undefined {
  const last = succeededBuilds(builds).at(-1);
  const made = last === undefined ? undefined : imageOf(last);
  return last === undefined || made === undefined
    ? undefined
    : { config: last.spec.machineConfig.name, ...made };
}

/** @returns the builds that made an image, oldest first. */
export function succeededBuilds(builds: readonly MachineOSBuild[]): readonly MachineOSBuild[] {
  return builds.filter((build) => hasCondition(build, 'Succeeded')).toSorted(oldestFirst);
}

/** @returns the image that a build made, as a part of a target. */
export function imageOf({ status }: MachineOSBuild): { readonly image: string } | undefined {
  const image = status?.digestedImagePushSpec;
  return image === undefined ? undefined : { image };
}

/**
 * Builds of one rendered config on one base have the same content, whatever their labels, because the layer is a
 * function of the rendered config. Only an engine build, which runs commands, starts new content.
 */
function imagesOfSameContent(
  builds: readonly MachineOSBuild[],
  target: MachineOSBuild,
  image: string,
): ReadonlySet<string> {
  const related = builds
    .filter(
      (build) =>
        hasCondition(build, 'Succeeded') &&
        build.spec.machineConfig.name === target.spec.machineConfig.name &&
        build.status?.baseImage !== undefined &&
        build.status.baseImage === target.status?.baseImage,
    )
    .toSorted(oldestFirst);
  const isEngine = ({ status }: MachineOSBuild) => status?.builder?.imageBuilderType === 'Engine';
  const at = related.findIndex(({ metadata }) => metadata.name === target.metadata.name);
  const start = related.findLastIndex((build, index) => index <= at && isEngine(build));
  const end = related.findIndex((build, index) => index > at && isEngine(build));
  const same = related
    .slice(Math.max(start, 0), end === -1 ? undefined : end)
    .flatMap(({ status }) => status?.digestedImagePushSpec ?? []);
  return new Set([...same, image]);
}

function hasCondition(build: MachineOSBuild, type: BuildConditionType): boolean {
  return (build.status?.conditions ?? []).some(
    (condition) => condition.type === type && condition.status === 'True',
  );
}

/** Order of creation; names decide between builds of the same second. */
function oldestFirst(a: MachineOSBuild, b: MachineOSBuild): number {
  const age = ({ metadata }: MachineOSBuild) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return byCodeUnits(age(a), age(b));
}

import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { digestInName } from '../../api/references.ts';
import type { Decision } from '../../disruption/actions.ts';
import { decideEqualOptIn, decideOptIn, type LayeredState, type OptIn } from '../../disruption/opt-in.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { imagesOfBase, pinnedBase } from './base-lookup.ts';
import { engineSpecOf } from './engine-spec.ts';
import { type ImageInputs, requestedBase } from './image-inputs.ts';

/** What layering gives the nodes of a pool, of whatever architecture. */
export interface LayeredPool extends LayeredState {
  /** The images that the base image stands for, by digest, where it was looked up: one for each architecture. */
  readonly images?: readonly string[];
}

/** @returns what layering gives the nodes of the pool; undefined for a pool that is not layered. */
export function layeredBy(
  { machineOSConfig, rendered, lookups }: Pick<ImageInputs, 'machineOSConfig' | 'rendered' | 'lookups'>,
  architectures: readonly string[],
): LayeredPool | undefined {
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const requested = requestedBase(machineOSConfig, rendered);
  return {
    config: rendered.metadata.name,
    base: requested && pinnedBase(requested, lookups),
    images: requested === undefined ? [] : imagesOfBase(requested, lookups),
    byEngine: mayNeedEngine(
      machineOSConfig.spec,
      rendered,
      architectures.length === 0 ? ['amd64'] : architectures,
    ),
  };
}

/**
 * @returns whether a container engine makes the image for one of the architectures; true where the builder refuses it.
 */
export function mayNeedEngine(
  spec: Partial<MachineOSConfigSpec>,
  rendered: MachineConfig,
  architectures: readonly string[],
): boolean {
  try {
    return architectures.some((architecture) => engineSpecOf(spec, rendered, architecture) !== undefined);
  } catch {
    return true;
  }
}

/** @returns whether a node in standard mode has to reboot into layered mode, as far as its status shows it. */
export function optInOf({ status }: Pick<MachineConfigNode, 'status'>, to: LayeredPool): OptIn {
  const { configVersion, baseImage = '', osBackend } = status ?? {};
  // Of an index, a node has the image of its architecture, and no other node has that.
  const booted = digestInName(baseImage);
  const own = to.images?.find((image) => booted !== undefined && digestInName(image) === booted);
  return decideOptIn(
    { config: configVersion?.current ?? '', base: baseImage, osBackend: osBackend?.name },
    { ...to, base: own ?? to.base },
  );
}

/**
 * @param was the pool before the change. @param nodes of the pool; without any, nothing is known of their content.
 * @returns whether the pool becomes layered, and every node has the content of its image already.
 */
export function isSwitchedOnAlone(
  was: ImageInputs,
  to: LayeredPool | undefined,
  nodes: readonly MachineConfigNode[],
): boolean {
  if (was.machineOSConfig !== undefined || to === undefined || nodes.length === 0) return false;
  return nodes.every((node) => optInOf(node, to).kind === 'equal');
}

/** @param config of nodes whose image has its content. @returns what they do to take the image. */
export function decideSwitchOn(config: NodeConfig): Decision {
  const rule = 'the nodes have the content of their image already: no action';
  const { actions, causes } = decideEqualOptIn(config);
  return {
    actions,
    causes: [{ subject: 'layering', kind: 'field', change: 'changed', rule, actions: [] }, ...causes],
  };
}

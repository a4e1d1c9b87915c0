import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { digestInName } from '../../api/references.ts';
import { decideOptIn, type LayeredState, type OptIn } from '../../disruption/opt-in.ts';
import { type BaseLookups, imagesOfBase, pinnedBase } from './base-lookup.ts';
import { engineSpecOf } from './engine-spec.ts';
import { requestedBase } from './requested-image.ts';

/** What layering gives the nodes of a pool, of whatever architecture. */
export interface LayeredPool extends LayeredState {
  /** The images that the base image stands for, by digest, where it was looked up: one for each architecture. */
  readonly images?: readonly string[];
}

/**
 * @param spec of the pool's MachineOSConfig, as far as it is known. @param architectures of the pool's nodes, as GOARCH.
 * @param lookups what the tags of base images stand for, as far as it is known.
 * @returns what layering gives the nodes of a pool.
 */
export function layeredStateOf(
  rendered: MachineConfig,
  spec: Partial<MachineOSConfigSpec>,
  architectures: readonly string[],
  lookups?: BaseLookups,
): LayeredPool {
  const requested = requestedBase({ spec }, rendered);
  return {
    config: rendered.metadata.name,
    base: requested && pinnedBase(requested, lookups),
    images: requested === undefined ? [] : imagesOfBase(requested, lookups),
    byEngine: mayNeedEngine(spec, rendered, architectures.length === 0 ? ['amd64'] : architectures),
  };
}

/** @returns whether a container engine makes the image for one of the architectures; true where the builder refuses it. */
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

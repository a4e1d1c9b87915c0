import type { MachineConfig } from '../../api/machine-config.ts';
import type { AppendOptions } from '../../image/append.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { type Layer, writeLayer } from '../../image/layer/write-layer.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import type { Obstacle } from '../../machineconfig/claim-conflicts.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { type ImageIdentity, labelsOf } from './build-facts.ts';
import { layerContent } from './layer-content.ts';

/**
 * What an image has beyond its base, as a function of what it is made of. The builder makes images by it, and the
 * operator computes them again before nodes may run them (builder/proof/prove-image.ts).
 */

export type AppendedLayer =
  | { readonly ok: true; readonly entries: readonly LayerEntry[]; readonly layer: Layer }
  | { readonly ok: false; readonly refusals: readonly Obstacle[] };

/**
 * @param config the rendered config, decoded.
 * @param base what the base has. `hasPackages`: commands of a container engine installed what the config asks for.
 * @returns the one layer, or everything of the config that it can't have.
 */
export async function appendedLayer(
  config: NodeConfig,
  rendered: MachineConfig,
  base: { readonly tree: BaseContent; readonly hasPackages: boolean },
): Promise<AppendedLayer> {
  const { tree, hasPackages } = base;
  const content = layerContent(config, rendered, { hasPackages, base: tree });
  if (!content.ok) return content;
  const { entries } = content;
  return { ok: true, entries, layer: await writeLayer(entries, { below: (path) => tree.at(path) }) };
}

/** @returns what is set in the configuration of the base. */
export function appendedOptions(identity: ImageIdentity): AppendOptions {
  return {
    labels: labelsOf(identity),
    created: identity.created,
    comment: `shale: ${identity.renderedConfig}`,
  };
}

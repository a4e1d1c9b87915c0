import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Decision } from '../../disruption/actions.ts';
import { decideEqualOptIn } from '../../disruption/opt-in.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import type { ImageInputs } from '../image/image-to-build.ts';
import { type LayeredPool, optInOf } from '../image/layered-pool.ts';

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

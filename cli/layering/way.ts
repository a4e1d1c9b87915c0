import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { plural } from '../../api/plural.ts';
import { isByDigest } from '../../api/references.ts';
import { type LayeredPool, optInOf } from '../change/opt-in.ts';

/**
 * Predicts what the layering switch costs the nodes of a pool.
 *
 * @param isLayered whether the nodes are to run an image; otherwise the stock image.
 * @param to the image; undefined where it is not known yet.
 * @returns a clause, after the name of the pool.
 */
export function formatWay(
  nodes: readonly Pick<MachineConfigNode, 'status'>[],
  isLayered: boolean,
  to: LayeredPool | undefined,
): string {
  const moving = nodes.filter(({ status }) => status?.mode !== (isLayered ? 'Layered' : 'Standard'));
  const where = isLayered ? 'an image' : 'the stock image';
  const total = plural(nodes.length, 'node');
  if (moving.length === 0) return `${total}, already on ${where}`;
  return `switching ${moving.length} of ${total} to ${where}, ${formatReboots(moving, isLayered, to)}`;
}

function formatReboots(
  moving: readonly Pick<MachineConfigNode, 'status'>[],
  isLayered: boolean,
  to: LayeredPool | undefined,
): string {
  if (!isLayered) return 'one reboot per node';
  if (to?.base === undefined || !isByDigest(to.base)) return 'at most one reboot per node';
  const rebooting = moving.filter((node) => optInOf(node, to).kind === 'reboot').length;
  if (rebooting === 0) return 'without a reboot';
  return rebooting === moving.length ? 'one reboot per node' : `${rebooting} of them with a reboot`;
}

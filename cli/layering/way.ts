import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { noun, plural } from '../../api/plural.ts';
import { isByDigest } from '../../api/references.ts';
import { unsupportedBecause } from '../../view/observed-cluster.ts';
import { type LayeredPool, optInOf } from '../change/opt-in.ts';

/** Where the nodes of a pool go. */
interface Destination {
  /** Whether they are to run an image; otherwise the stock image. */
  readonly isLayered: boolean;
  /** The image; undefined where it is not known yet. */
  readonly to: LayeredPool | undefined;
  /** Whether nodes that run an image already get another one. */
  readonly otherImage: boolean;
}

/**
 * Predicts what the layering switch costs the nodes of a pool.
 *
 * @returns a clause, after the name of the pool, and whether a node may reboot.
 */
export function predictWay(
  nodes: readonly Pick<MachineConfigNode, 'status'>[],
  { isLayered, to, otherImage }: Destination,
): { readonly text: string; readonly disrupts: boolean } {
  const supported = nodes.filter((node) => unsupportedBecause(node) === undefined);
  const moving = supported.filter(({ status }) => status?.mode !== (isLayered ? 'Layered' : 'Standard'));
  const updating = isLayered && otherImage ? supported.length - moving.length : 0;
  const staying = nodes.length - supported.length;
  const where = isLayered ? 'an image' : 'the stock image';
  const total = plural(nodes.length, 'node');
  const reboots = formatReboots(moving, isLayered, to);
  const clauses = [
    ...(moving.length === 0 ? [] : [`switching ${moving.length} of ${total} to ${where}, ${reboots}`]),
    ...(updating === 0
      ? []
      : [`updating ${updating} of ${total} to another image, at most one reboot per node`]),
    ...(staying === 0
      ? []
      : [
          `${staying} of ${total} ${noun(staying, 'is', 'are')} not supported and ${noun(staying, 'keeps', 'keep')} what ${noun(staying, 'it runs', 'they run')}`,
        ]),
  ];
  return {
    text: clauses.length === 0 ? `${total}, already on ${where}` : clauses.join('; '),
    disrupts: updating > 0 || (moving.length > 0 && reboots !== WITHOUT_REBOOT),
  };
}

const WITHOUT_REBOOT = 'without a reboot';

function formatReboots(
  moving: readonly Pick<MachineConfigNode, 'status'>[],
  isLayered: boolean,
  to: LayeredPool | undefined,
): string {
  if (!isLayered) return 'one reboot per node';
  if (to?.base === undefined || !isByDigest(to.base)) return 'at most one reboot per node';
  const rebooting = moving.filter((node) => optInOf(node, to).kind === 'reboot').length;
  if (rebooting === 0) return WITHOUT_REBOOT;
  return rebooting === moving.length ? 'one reboot per node' : `${rebooting} of them with a reboot`;
}

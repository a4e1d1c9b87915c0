import { noun, plural } from '../../api/plural.ts';
import { costOfPrediction, type PredictedNode } from '../../predict/node/predict-node.ts';

/** Where the nodes of a pool go. */
export type SwitchedTo =
  | { readonly mode: 'Standard' }
  | {
      readonly mode: 'Layered';
      /** Whether the digest of the base image is known; without it, nodes may need no reboot. */
      readonly isBaseKnown: boolean;
      /** Whether nodes that run an image already get another one. */
      readonly otherImage: boolean;
    };

/**
 * Formats what the layering switch costs the nodes of a pool.
 *
 * @returns a clause, after the name of the pool, and whether a node may reboot.
 */
export function formatWay(
  nodes: readonly PredictedNode[],
  to: SwitchedTo,
): { readonly text: string; readonly disrupts: boolean } {
  const supported = nodes.filter(({ prediction }) => prediction.kind !== 'keeps');
  const moving = supported.filter(({ node }) => node.status?.mode !== to.mode);
  const updating = to.mode === 'Layered' && to.otherImage ? supported.length - moving.length : 0;
  const staying = nodes.length - supported.length;
  const where = to.mode === 'Layered' ? 'an image' : 'the stock image';
  const total = plural(nodes.length, 'node');
  const reboots = formatReboots(moving, to);
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

function formatReboots(moving: readonly PredictedNode[], to: SwitchedTo): string {
  if (to.mode === 'Layered' && !to.isBaseKnown) return 'at most one reboot per node';
  const rebooting = moving.filter(({ prediction }) => costOfPrediction(prediction) === 'reboot').length;
  if (rebooting === 0) return WITHOUT_REBOOT;
  return rebooting === moving.length ? 'one reboot per node' : `${rebooting} of them with a reboot`;
}

import { plural } from '../../api/plural.ts';
import type { NodesAlike } from '../../predict/rollback-prediction.ts';
import { RELABEL_LIMIT } from '../../rollout/pools/rollback.ts';

/** Names in one line; a pool can have thousands. */
const NAMED_NODES = 10;

/** @returns one line for each group of nodes, and what they may wait for. */
export function formatPrediction(groups: readonly NodesAlike[]): readonly string[] {
  const lines = groups.map(({ what, nodes }) => {
    const more = nodes.length > NAMED_NODES ? [`and ${nodes.length - NAMED_NODES} more`] : [];
    return `  ${plural(nodes.length, 'node')} ${what}: ${[...nodes.slice(0, NAMED_NODES), ...more].join(', ')}`;
  });
  const limit = `  the builder labels the image for that; if it doesn't within ${RELABEL_LIMIT / 1000} s, these nodes reboot`;
  return groups.some(({ waitsForLabel }) => waitsForLabel) ? [...lines, limit] : lines;
}

/**
 * @returns whether nodes are, or may be, drained or rebooted: those that wait for a label reboot when it does not come
 * in time.
 */
export function mayDisrupt(groups: readonly NodesAlike[]): boolean {
  return groups.some(({ disrupts, waitsForLabel }) => disrupts || waitsForLabel);
}

import type { Hold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

/** The node, or its Machine, is being deleted. Nothing waits for it, because it does not come back. */
export const deletion = {
  kind: 'holder',
  hold: ({ node, machineDeleting }: Pick<SeenNode, 'node' | 'machineDeleting'>): Hold | undefined => {
    const isDeleted = node.metadata.deletionTimestamp !== undefined;
    if (machineDeleting !== true && !isDeleted) return undefined;
    const what = machineDeleting === true ? 'its Machine' : 'the node';
    return { reason: BEING_DELETED, message: `${what} is being deleted` };
  },
} as const;

export const BEING_DELETED = 'BeingDeleted';

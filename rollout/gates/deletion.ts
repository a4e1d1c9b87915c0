import type { Hold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

/** Set by the cluster autoscaler on a node that it is about to delete (kubernetes/autoscaler, cluster-autoscaler/utils/taints). */
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';

type Leaving = Pick<SeenNode, 'node' | 'machineDeleting'>;

/** @returns that the node goes for good, so that nothing waits for it. */
export function beingDeleted({ node, machineDeleting }: Leaving): Hold | undefined {
  if (machineDeleting === true) return { reason: BEING_DELETED, message: 'its Machine is being deleted' };
  return node.metadata.deletionTimestamp === undefined
    ? undefined
    : { reason: BEING_DELETED, message: 'the node is being deleted' };
}

/** The node, or its Machine, is being deleted or is about to be. */
export const deletion = {
  kind: 'holder',
  hold: (leaving: Leaving): Hold | undefined => {
    const isDoomed = leaving.node.spec?.taints?.some(({ key }) => key === TO_BE_DELETED);
    return (
      beingDeleted(leaving) ??
      (isDoomed === true
        ? { reason: BEING_DELETED, message: 'the cluster autoscaler is about to delete the node' }
        : undefined)
    );
  },
} as const;

const BEING_DELETED = 'BeingDeleted';

import type { Node } from '../api/kubernetes.ts';
import { withoutManagedFields } from '../cluster/informer.ts';

/**
 * What of a Node is held in memory. A kubelet's image list and capacities are ten times as long as what a rollout reads,
 * and with thousands of nodes most of what this process would hold.
 */
export function keptNode(given: Node): Node {
  const { apiVersion, kind, metadata, spec = {}, status = {} } = withoutManagedFields(given);
  const { unschedulable, taints } = spec;
  const { bootID, architecture } = status.nodeInfo ?? {};
  return {
    apiVersion,
    kind,
    metadata,
    spec: {
      ...(unschedulable === undefined ? {} : { unschedulable }),
      ...(taints === undefined ? {} : { taints }),
    },
    status: {
      conditions: (status.conditions ?? []).filter(({ type }) => type === 'Ready'),
      nodeInfo: {
        ...(bootID === undefined ? {} : { bootID }),
        ...(architecture === undefined ? {} : { architecture }),
      },
    },
  };
}

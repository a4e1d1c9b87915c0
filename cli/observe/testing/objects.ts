import type { Node } from '../../../api/kubernetes.ts';
import type {
  MachineConfigNode,
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
} from '../../../api/machine-config-node.ts';
import type { MachineConfigPool, MachineConfigPoolStatus } from '../../../api/machine-config-pool.ts';
import type { Condition } from '../../../api/object.ts';
import { nothingObserved, type ObservedCluster } from '../observed-cluster.ts';

const GROUP = 'machineconfiguration.openshift.io/v1';
/** When every condition of these objects began. */
export const SINCE = '2026-11-20T10:00:00Z';

export function condition(
  type: string,
  status: Condition['status'],
  message = '',
  reason = 'Test',
): Condition {
  return { type, status, reason, message, lastTransitionTime: SINCE };
}

export function pool(
  conditions: Condition[],
  more: Partial<MachineConfigPoolStatus> & { readonly paused?: boolean } = {},
): MachineConfigPool {
  const { paused = false, ...status } = more;
  return {
    apiVersion: GROUP,
    kind: 'MachineConfigPool',
    metadata: { name: 'worker' },
    spec: { paused },
    status: { conditions, ...status },
  };
}

/** @returns a MachineConfigNode of pool worker that is to run rendered-worker-1. */
export function machineConfigNode(
  name: string,
  status?: MachineConfigNodeStatus,
  spec: Partial<MachineConfigNodeSpec> = {},
): MachineConfigNode {
  return {
    apiVersion: GROUP,
    kind: 'MachineConfigNode',
    metadata: { name },
    spec: {
      node: { name },
      pool: { name: 'worker' },
      configVersion: { desired: 'rendered-worker-1' },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

export function node(name: string, annotations: Record<string, string> = {}, unschedulable = false): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations },
    spec: { unschedulable },
    status: { conditions: [condition('Ready', 'True')] },
  };
}

/** @returns a cluster that has these things and no others. */
export function observed(more: Partial<ObservedCluster>): ObservedCluster {
  return { ...nothingObserved, ...more };
}

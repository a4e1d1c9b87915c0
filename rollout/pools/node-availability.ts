import { kernelBootID } from '../../api/boot-id.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { type StartupState, startupOf } from './new-node.ts';

/** Whether pods run on a node, as the cluster knows it. */
export interface NodeAvailability {
  readonly ready: boolean;
  /** ms since the epoch; absent on a node that is Ready or has never reported. */
  readonly notReadySince?: number | undefined;
  readonly schedulable: boolean;
  /** The kubelet and the daemon report the same boot. */
  readonly bootAgrees: boolean;
  /** Set on a node with a startup taint. */
  readonly startup?: StartupState | undefined;
}

/** @param daemon what the node's daemon reports. @returns whether pods run on the node. */
export function nodeAvailability(node: Node, daemon: MachineConfigNodeStatus | undefined): NodeAvailability {
  const ready = readyCondition(node);
  return {
    ready: ready?.status === 'True',
    notReadySince:
      ready === undefined || ready.status === 'True' ? undefined : Date.parse(ready.lastTransitionTime),
    schedulable: node.spec?.unschedulable !== true,
    bootAgrees: bootAgrees(node, daemon),
    startup: startupOf(node),
  };
}

/** @returns whether an update of the node disturbs no pod, because none could be scheduled on it yet. */
export function isNew({
  availability: { startup },
}: {
  readonly availability: Pick<NodeAvailability, 'startup'>;
}): boolean {
  return startup?.isNew === true;
}

/** @returns whether the node's kubelet says that it can run pods, as far as the cluster knows. */
export function isReady(node: Node): boolean {
  return readyCondition(node)?.status === 'True';
}

function readyCondition({ status }: Node) {
  return status?.conditions?.find(({ type }) => type === 'Ready');
}

/** After a soft reboot the kubelet reports the same boot; the daemon has waited for its next heartbeat by then. */
function bootAgrees({ status }: Node, daemon: MachineConfigNodeStatus | undefined): boolean {
  const [kubelet, own] = [status?.nodeInfo?.bootID, daemon?.bootID];
  return kubelet === undefined || own === undefined || kubelet === kernelBootID(own);
}

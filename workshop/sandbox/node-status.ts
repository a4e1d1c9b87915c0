import { type Node, Nodes } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { goArchitecture } from '../../image/architecture.ts';

/**
 * Reports what a kubelet does: Ready, and the boot id by which others see that the machine has rebooted.
 *
 * @param bootID of the present boot, once there is one.
 * @throws ApiError.
 */
export async function reportNode(
  client: ApiClient,
  name: string,
  ready: boolean,
  bootID?: string,
): Promise<void> {
  const node = await client.get(Nodes, name);
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  await updateStatus(client, Nodes, node, (seen) => nodeStatus(seen, ready, bootID, now));
}

function nodeStatus(
  node: Node,
  ready: boolean,
  bootID: string | undefined,
  now: string,
): NonNullable<Node['status']> {
  const condition = {
    type: 'Ready',
    status: ready ? ('True' as const) : ('False' as const),
    reason: ready ? 'KubeletReady' : 'KubeletNotReady',
    message: ready ? 'the sandbox machine is up' : 'the sandbox machine is rebooting',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  };
  const others = (node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
  return {
    ...node.status,
    conditions: [...others, condition],
    nodeInfo: {
      ...node.status?.nodeInfo,
      ...(bootID === undefined ? {} : { bootID }),
      architecture: goArchitecture(process.arch),
      kubeletVersion: 'v1.34.0+sandbox',
    },
  };
}

import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { isReady, progressOf } from '../pools/node-state.ts';

/** Values of MCO's state annotation (pkg/daemon/constants). */
type DaemonState = 'Done' | 'Working' | 'Degraded';

/**
 * MCO's well-known annotations of a Node, from its MachineConfigNode, for the tools that read them there; and that the node
 * takes pods.
 *
 * @returns the annotations to set (text) or take away (null), for a merge patch; undefined when the Node has them right.
 */
export function annotationChanges(
  node: Node,
  { spec, status }: MachineConfigNode,
): Readonly<Record<string, string | null>> | undefined {
  const progress = progressOf(spec, status);
  const state: DaemonState =
    progress.kind === 'degraded' ? 'Degraded' : progress.kind === 'updated' ? 'Done' : 'Working';
  const present = node.metadata.annotations ?? {};
  const desired: Readonly<Record<string, string | undefined>> = {
    [annotations.currentConfig]: status?.configVersion?.current || undefined,
    [annotations.desiredConfig]: spec.configVersion.desired,
    [annotations.currentImage]: status?.configImage?.currentImage,
    [annotations.desiredImage]: spec.configImage?.desiredImage,
    [annotations.state]: state,
    [annotations.reason]: progress.kind === 'degraded' ? progress.why : undefined,
    [annotations.inService]: takesPods(node) ? 'true' : present[annotations.inService],
  };
  const changes = Object.entries(desired).filter(([key, value]) => present[key] !== value);
  return changes.length === 0
    ? undefined
    : Object.fromEntries(changes.map(([key, value]) => [key, value ?? null]));
}

/** Karpenter adds the startup taints of a NodePool when it removes this one (karpenter.sh/docs, "Node registration"). */
const UNREGISTERED = 'karpenter.sh/unregistered';

function takesPods(node: Node): boolean {
  const waits = node.spec?.taints?.some((taint) => isStartupTaint(taint) || taint.key === UNREGISTERED);
  return isReady(node) && waits !== true;
}

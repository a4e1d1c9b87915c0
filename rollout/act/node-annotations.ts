import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import type { LeaseHolding } from '../node-leases.ts';
import { isReady } from '../pools/node-availability.ts';
import { type Progress, progressOf } from '../pools/progress.ts';
import { workOn } from '../pools/work.ts';

/** Values of MCO's state annotation (pkg/daemon/constants). */
type DaemonState = 'Done' | 'Working' | 'Degraded';

/**
 * MCO's well-known annotations of a Node, from its MachineConfigNode, for the tools that read them there; and that the
 * node takes pods. As in MCO, a node keeps its old desired config until the rollout takes it: those tools need not wait
 * for a target that is only staged, and it saves a write for each node.
 *
 * @returns the annotations to set (text) or take away (null), for a merge patch; undefined when the Node has them
 *   right.
 */
export function annotationChanges(
  node: Node,
  { spec, status }: MachineConfigNode,
): Readonly<Record<string, string | null>> | undefined {
  const progress = progressOf(spec, status);
  const { configVersion, configImage } = status ?? {};
  const isLeft = isLeftAlone(node, spec, status, progress);
  const state: DaemonState =
    progress.kind === 'degraded' ? 'Degraded' : progress.kind === 'updated' || isLeft ? 'Done' : 'Working';
  const present = node.metadata.annotations ?? {};
  const desired: Readonly<Record<string, string | undefined>> = {
    [annotations.currentConfig]: configVersion?.current || undefined,
    [annotations.desiredConfig]: isLeft ? configVersion?.current : spec.configVersion.desired,
    [annotations.currentImage]: configImage?.currentImage,
    [annotations.desiredImage]: isLeft ? configImage?.currentImage : spec.configImage?.desiredImage,
    [annotations.state]: state,
    [annotations.reason]: progress.kind === 'degraded' ? progress.why : undefined,
    [annotations.inService]: takesPods(node) ? 'true' : present[annotations.inService],
  };
  const changes = Object.entries(desired).filter(([key, value]) => present[key] !== value);
  return changes.length === 0
    ? undefined
    : Object.fromEntries(changes.map(([key, value]) => [key, value ?? null]));
}

/**
 * @param lease the node's, as it is held now.
 * @returns whether the node runs its target and is still to be uncordoned: that write has the annotations, too
 *   (node-work.ts), so no other is needed. Until then the lease is ours; of a node that stays cordoned it is released.
 */
export function awaitsUncordon(
  node: Node,
  { spec, status }: MachineConfigNode,
  lease: LeaseHolding,
): boolean {
  const isCordoned = workOn(node, spec).cordon !== undefined;
  return isCordoned && lease.by === 'us' && progressOf(spec, status).kind === 'updated';
}

/** It runs a config, and the rollout has not come to it with another. */
function isLeftAlone(
  node: Node,
  spec: MachineConfigNode['spec'],
  status: MachineConfigNode['status'],
  { kind }: Progress,
): boolean {
  const { cordon, grant } = workOn(node, spec);
  const waits = (kind === 'preparing' || kind === 'staged') && cordon === undefined && grant === undefined;
  return waits && (status?.configVersion?.current ?? '') !== '';
}

/**
 * Karpenter adds the startup taints of a NodePool when it removes this one (karpenter.sh/docs, "Node registration").
 */
const UNREGISTERED = 'karpenter.sh/unregistered';

function takesPods(node: Node): boolean {
  const waits = node.spec?.taints?.some((taint) => isStartupTaint(taint) || taint.key === UNREGISTERED);
  return isReady(node) && waits !== true;
}

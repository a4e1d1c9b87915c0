import type { Node } from '../../api/kubernetes.ts';
import { annotations, labels } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';

/**
 * A node that has a startup taint (api/startup-taint.ts): no pod is scheduled on it until the operator removes the
 * taint.
 */
export interface StartupState {
  /** When the node registered, in ms since the epoch; absent where the API server has not said. */
  readonly registeredAt?: number | undefined;
  /**
   * It has had the taint ever since it registered, so its update disturbs no pod. A taint that somebody adds to a node
   * in service evicts nothing. A control-plane node is none: its update takes a member of etcd away, whatever runs
   * there.
   */
  readonly isNew: boolean;
  /** The same of any node, those of the control plane included. Absent: no. */
  readonly neverServed?: boolean;
}

/** @returns undefined for a node without a startup taint. */
export function startupOf(node: Pick<Node, 'metadata' | 'spec'>): StartupState | undefined {
  const { metadata, spec } = node;
  if (spec?.taints?.some(isStartupTaint) !== true) return undefined;
  const registeredAt = Date.parse(metadata.creationTimestamp ?? '');
  const neverServed = metadata.annotations?.[annotations.inService] === undefined;
  return {
    isNew: !isControlPlane(node) && neverServed,
    neverServed,
    registeredAt: Number.isNaN(registeredAt) ? undefined : registeredAt,
  };
}

/** @returns isNew (node-availability.ts) of a node whose state was not read. */
export function isNewNode(node: Node): boolean {
  return startupOf(node)?.isNew === true;
}

const CONTROL_PLANE_ROLES = [`${labels.nodeRolePrefix}control-plane`, `${labels.nodeRolePrefix}master`];

/** @returns whether the node has a role of the control plane. */
export function isControlPlane({ metadata }: Pick<Node, 'metadata'>): boolean {
  return CONTROL_PLANE_ROLES.some((role) => metadata.labels?.[role] !== undefined);
}

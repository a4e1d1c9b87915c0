import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
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
}

/** @returns undefined for a node without a startup taint. */
export function startupOf(
  { metadata, spec }: Pick<Node, 'metadata' | 'spec'>,
  controlPlane: boolean,
): StartupState | undefined {
  if (spec?.taints?.some(isStartupTaint) !== true) return undefined;
  const registeredAt = Date.parse(metadata.creationTimestamp ?? '');
  return {
    isNew: !controlPlane && metadata.annotations?.[annotations.inService] === undefined,
    registeredAt: Number.isNaN(registeredAt) ? undefined : registeredAt,
  };
}

/** @returns whether an update of the node disturbs no pod, because none could be scheduled on it yet. */
export function isNew({ startup }: { readonly startup?: StartupState | undefined }): boolean {
  return startup?.isNew === true;
}

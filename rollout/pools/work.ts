import type { Node } from '../../api/kubernetes.ts';
import type { Grant, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { type HookRequest, hookRequestOn } from './hooks.ts';

/** The rollout's work on a node, read from the objects alone, so that a restart loses nothing. */
export interface Work {
  /** Cordoned under our annotation; `uncordon` when it was schedulable before. */
  readonly cordon: { readonly uncordon: boolean } | undefined;
  readonly grant: Grant['level'] | undefined;
  /** What is requested of hooks on the node; absent: nothing. */
  readonly hooks?: HookRequest | undefined;
}

/** @returns what the rollout has under way on a node. */
export function workOn(node: Node, spec: MachineConfigNodeSpec): Work {
  return { cordon: cordonOf(node), grant: validGrant(spec), hooks: hookRequestOn(node) };
}

function cordonOf(node: Node): Work['cordon'] {
  const mark = node.metadata.annotations?.[annotations.cordonedByShale];
  return mark === undefined ? undefined : { uncordon: mark === 'true' };
}

/** A grant for another target than the one desired is none (api/machine-config-node.ts). */
function validGrant({
  grant,
  configVersion,
  configImage,
}: MachineConfigNodeSpec): Grant['level'] | undefined {
  return grant?.config === configVersion.desired && grant.image === configImage?.desiredImage
    ? grant.level
    : undefined;
}

/**
 * The states of a node on its way to its target, and what each means, as text. The operator, `shale status`, the live
 * page, metrics and the reference use these names and no others. The first are those that need somebody most.
 */
export const nodeStates = {
  degraded: 'the update failed, the node is unhealthy, or managed files were changed by hand',
  verifying: 'runs the target, and its health checks have not passed yet',
  rebooting: 'rebooting into the target',
  draining: 'pods are being evicted, or hooks are to be cleared before that',
  applying: 'the change is being applied to the running system',
  staging: 'the target is being staged on disk',
  staged: 'staged, waiting for permission to update',
  silent: 'its daemon has not reported yet',
  unmanaged: 'it is in no pool, so no daemon manages it',
  updated: 'runs the target of its pool',
} as const satisfies Readonly<Record<string, string>>;

export type NodeStateName = keyof typeof nodeStates;

/** In the order of {@link nodeStates}. */
export const nodeStateNames = Object.keys(nodeStates) as [NodeStateName, ...NodeStateName[]];

/** States in which a node is, or may be, out of service for its update. */
export const statesAtWork: ReadonlySet<NodeStateName> = new Set([
  'verifying',
  'rebooting',
  'draining',
  'applying',
]);

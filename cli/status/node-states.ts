/** Where a node is on its way, from the one end to the other. */
export const NODE_STATES = [
  'silent',
  'staging',
  'staged',
  'draining',
  'applying',
  'rebooting',
  'degraded',
  'updated',
] as const;
export type NodeState = (typeof NODE_STATES)[number];

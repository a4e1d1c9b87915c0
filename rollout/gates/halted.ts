import { awaitsRecovery } from '../pools/failures.ts';
import type { NodeGate } from './gate.ts';

/** Failed nodes stopped the rollout. A node that a failed live update left between two states may reboot into its target. */
export const halted: NodeGate = {
  kind: 'node',
  hold: ({ halt }, node) =>
    halt.kind === 'none' || (halt.mayRecover && awaitsRecovery(node))
      ? undefined
      : { reason: 'RolloutStopped', message: halt.why },
};

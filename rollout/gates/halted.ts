import { awaitsRecovery, retriesTarget } from '../pools/failures.ts';
import type { NodeGate } from './gate.ts';

/**
 * Failed nodes stopped the rollout. A node that a failed live update left between two states may reboot into its
 * target, and one that retries its target may take it.
 */
export const halted: NodeGate = {
  kind: 'node',
  hold: ({ halt }, node) => {
    if (halt.kind === 'none' || retriesTarget(node)) return undefined;
    if (halt.mayRecover && awaitsRecovery(node)) return undefined;
    return { reason: 'RolloutStopped', message: halt.why };
  },
};

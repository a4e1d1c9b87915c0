import type { BootImage } from '../../api/machine-config-pool.ts';
import { provenNodes } from './choose-nodes.ts';
import { isNew } from './node-availability.ts';
import { isAway, type NodeState } from './node-state.ts';
import type { PoolStatusInputs, StatusObservation } from './pool-conditions.ts';
import type { PoolSettings } from './pool-settings.ts';
import { provesTarget } from './update-state.ts';

/**
 * Decides which image new nodes of a pool are to boot: the target, once the rollout has proven it, and until then what
 * it was before (docs/decisions/0015-image-for-new-nodes.md). An image that no node of a pool has tried yet would
 * otherwise fail on every machine that an autoscaler adds.
 *
 * More than half of the nodes that take part are enough, so that a node that is out of order for weeks doesn't leave
 * new nodes with an old image. A pool without nodes has nobody to prove an image: it follows its target until a rollout
 * has proven one.
 *
 * @param now ms since the epoch.
 * @returns undefined in standard mode, where new nodes boot the stock image, and before the first image is proven.
 */
export function bootImageOf(
  { pool, observation, machineCount, decision }: BootImageInputs,
  now: number,
): BootImage | undefined {
  const { target, settings } = observation;
  const before = pool.status?.bootImage;
  switch (target.kind) {
    case 'none':
    case 'awaiting-image':
      return before;
    case 'standard':
      return undefined;
    case 'rolled-back': {
      // A new node must not boot the image that the pool was rolled back from.
      const { image } = target.target;
      return image === undefined ? undefined : { image, proof: 'Rollback' };
    }
    case 'layered': {
      const { image } = target.target;
      if (isProven({ machineCount, decision }, settings.soak, now)) return { image, proof: 'Rollout' };
      const isUntried = machineCount === 0 && (before === undefined || before.proof === 'None');
      return isUntried ? { image, proof: 'None' } : before;
    }
  }
}

type BootImageInputs = Pick<PoolStatusInputs, 'pool' | 'machineCount' | 'decision'> & {
  readonly observation: Pick<StatusObservation, 'target'> & { readonly settings: Pick<PoolSettings, 'soak'> };
};

/** Nodes that are switched off, or don't have their first configuration yet, say nothing for or against a target. */
function isProven(
  { machineCount, decision }: Pick<BootImageInputs, 'machineCount' | 'decision'>,
  soak: number,
  now: number,
): boolean {
  const { states, settled, halted } = decision;
  if (halted !== undefined) return false;
  const takesNoPart = (node: NodeState) =>
    isAway(node) || (isNew(node) && !(node.availability.ready && provesTarget(node.update, soak, now)));
  const partaking = machineCount - states.filter(takesNoPart).length;
  const proven = provenNodes(
    states.filter((node) => !takesNoPart(node)),
    { settled: settled.nodes, soak, now },
  );
  return proven * 2 > partaking;
}

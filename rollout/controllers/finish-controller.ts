import { done, type Result } from '../../cluster/controller.ts';
import type { Lanes } from '../act/lanes.ts';
import { type NodeWork, resultOf, type WorkPiece } from '../act/node-work.ts';
import type { Caches } from '../caches.ts';
import type { Hold } from '../gates/hold.ts';
import type { RolloutOptions } from '../options.ts';
import type { Membership } from '../pools/membership.ts';
import { readNode } from '../pools/node-state.ts';
import { isFinished } from '../pools/node-step.ts';
import { poolSettings } from '../pools/pool-settings.ts';
import { type HolderParts, holdersOfNode } from './observe-holders.ts';

export interface FinishControllerParts extends HolderParts {
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes' | 'pools'>;
  readonly membership: Pick<Membership, 'poolOf'>;
  readonly work: Pick<NodeWork, 'carryOut'>;
  /** Shared with the passes over pools. */
  readonly lanes: Lanes;
  readonly options: Pick<RolloutOptions, 'pace'>;
}

/**
 * Finishes the update of a node as soon as the node runs its target and serves, without waiting for a pass over its
 * pool (docs/decisions/0027-reconciling.md). The passes (pool-controller.ts) do everything else, and finish what is
 * missed here.
 */
export class FinishController {
  readonly #parts: FinishControllerParts;

  constructor(parts: FinishControllerParts) {
    this.#parts = parts;
  }

  /** @param name of a node. @throws ApiError, a conflict too: then the node is observed again. */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { lanes, work } = this.#parts;
    if ((await this.#finished(name, signal)) === undefined) return done;
    return lanes.run('ends', async () => {
      // It may have changed while it waited for its lane.
      const piece = await this.#finished(name, signal);
      return piece === undefined ? done : resultOf(await work.carryOut({ kind: 'finish' }, piece, signal));
    });
  }

  /** @returns the node, where its update is over, no hook has to be asked, and nobody needs its cordon. */
  async #finished(name: string, signal: AbortSignal): Promise<WorkPiece | undefined> {
    const { caches, membership, leases, options, now } = this.#parts;
    const [node, machineConfigNode] = [caches.nodes.get(name), caches.machineConfigNodes.get(name)];
    const pool = caches.pools.get(membership.poolOf(name) ?? '');
    if (node === undefined || machineConfigNode?.spec.grant === undefined || pool === undefined)
      return undefined;
    const { spec, status } = machineConfigNode;
    const isFinishedUnder = (holders: readonly Hold[]) => {
      const hand = { lease: leases.holding(name), inMaintenance: false, holders };
      return isFinished(readNode({ node, spec, status, assigned: true, ...hand }), now());
    };
    const { hooks } = poolSettings(pool, options.pace);
    // Most nodes are not, and nothing is to be asked about them.
    if (!isFinishedUnder([]) || hooks.after.length > 0) return undefined;
    const holders = await holdersOfNode(this.#parts, node, signal);
    return isFinishedUnder(holders) ? { node, machineConfigNode, onlyNode: false, hooks } : undefined;
  }
}

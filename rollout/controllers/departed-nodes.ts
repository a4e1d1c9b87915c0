import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { NodeWork } from '../act/node-work.ts';
import type { Caches } from '../caches.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { Membership } from '../pools/membership.ts';
import { isReady, workOn } from '../pools/node-state.ts';

export interface DepartedNodesControllerParts {
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly membership: Membership;
  readonly leases: NodeLeases;
  readonly work: NodeWork;
}

const WHY = 'it is in no pool any more';
/** ms; a node that becomes Ready causes an event, so this is only for what causes none. */
const LOOK_AGAIN = 60_000;

/**
 * Cleans up nodes that are in no pool, which no pool's controller reconciles: nodes that lost their label during an update,
 * that two pools claim, that were deleted or whose pool was. Removes what Shale has put on them.
 */
export class DepartedNodesController {
  readonly #parts: DepartedNodesControllerParts;

  constructor(parts: DepartedNodesControllerParts) {
    this.#parts = parts;
  }

  /** @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { caches, membership, leases, work } = this.#parts;
    if (membership.poolOf(name) !== undefined) return done;
    const node = caches.nodes.get(name);
    const machineConfigNode = caches.machineConfigNodes.get(name);
    if (node === undefined || machineConfigNode === undefined) {
      if (leases.isOurs(name)) await leases.release(name, signal);
      return done;
    }
    const { cordon, grant } = workOn(node, machineConfigNode.spec);
    if (cordon === undefined && grant === undefined && !leases.isOurs(name)) return done;
    const piece = { node, machineConfigNode, onlyNode: false };
    if (isReady(node)) {
      await work.carryOut({ kind: 'back-out', why: WHY }, piece, signal);
      return done;
    }
    // Perhaps in the middle of a reboot: nothing new begins there, and it stays cordoned until it is back.
    await work.carryOut({ kind: 'suspend', why: WHY }, piece, signal);
    return requeueAfter(LOOK_AGAIN);
  }
}

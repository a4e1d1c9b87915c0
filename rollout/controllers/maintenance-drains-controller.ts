import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import {
  awaitedPods,
  hasMaintenanceDrain,
  withMaintenanceDrain,
  withoutMaintenanceDrain,
} from '../act/awaited-pods.ts';
import { writeStatus } from '../act/node-writes.ts';
import type { Caches } from '../caches.ts';
import { NODE_MAINTENANCE } from '../gates/node-maintenance.ts';
import { PLANNED_MAINTENANCE } from '../gates/planned-maintenance.ts';
import type { RolloutOptions } from '../options.ts';
import { isReady } from '../pools/node-availability.ts';
import { HELD_RETRY, type HolderParts, holdersOfNode } from './observe-holders.ts';

export interface MaintenanceDrainsControllerParts extends HolderParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly options: Pick<RolloutOptions, 'drain'>;
}

/** Holders that drain the node, and say so. */
const DRAINING: readonly string[] = [NODE_MAINTENANCE, PLANNED_MAINTENANCE];
/** ms between two looks at the pods of a node that is being drained. */
const DRAIN_RETRY = 15_000;
/** The taint of a cordoned node; the node controller writes when it came (pkg/util/taints, SwapNodeControllerTaint). */
const CORDON_TAINT = 'node.kubernetes.io/unschedulable';

/**
 * Reports on MachineConfigNodes what the drain of a maintenance still waits for: `shale maintenance start` shows it in
 * one terminal, and the Node Maintenance Operator by names of pods alone. Pods are listed of nodes that are cordoned
 * and in maintenance, and of no others.
 */
export class MaintenanceDrainsController {
  readonly #parts: MaintenanceDrainsControllerParts;

  constructor(parts: MaintenanceDrainsControllerParts) {
    this.#parts = parts;
  }

  /** @param name of a node. @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, options, now } = this.#parts;
    const machineConfigNode = caches.machineConfigNodes.get(name);
    if (machineConfigNode === undefined) return done;
    const node = caches.nodes.get(name);
    if (node?.spec?.unschedulable !== true) {
      if (node !== undefined) await this.#clear({ node, machineConfigNode }, signal);
      return done;
    }
    const piece = { node, machineConfigNode };
    const holders = await holdersOfNode(this.#parts, node, signal);
    if (!holders.some(({ reason }) => DRAINING.includes(reason))) {
      await this.#clear(piece, signal);
      // No event tells that a NodeMaintenance of a cordoned node begins.
      return requeueAfter(HELD_RETRY);
    }
    const times = timesOf(node, now());
    const awaited = await awaitedPods(client, name, { options: options.drain, times }, signal);
    await writeStatus(
      this.#parts,
      piece,
      (status) => withMaintenanceDrain(status, awaited, new Date(now())),
      signal,
    );
    return requeueAfter(awaited === undefined ? HELD_RETRY : DRAIN_RETRY);
  }

  async #clear(
    piece: { readonly node: Node; readonly machineConfigNode: MachineConfigNode },
    signal: AbortSignal,
  ): Promise<void> {
    if (!hasMaintenanceDrain(piece.machineConfigNode.status)) return;
    await writeStatus(this.#parts, piece, withoutMaintenanceDrain, signal);
  }
}

function timesOf(node: Node, now: number) {
  const cordoned = node.spec?.taints?.find(({ key }) => key === CORDON_TAINT);
  const cordonedAt = Date.parse(cordoned?.timeAdded ?? '');
  return {
    ...(Number.isNaN(cordonedAt) ? {} : { cordonedAt }),
    ...(isReady(node) ? {} : { lostAt: now }),
  };
}

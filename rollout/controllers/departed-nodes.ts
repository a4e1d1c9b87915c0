import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { MachineRemediation } from '../act/machine-remediation.ts';
import { type NodeWork, resultOf } from '../act/node-work.ts';
import { patchMachineConfigNode } from '../act/node-writes.ts';
import type { Caches } from '../caches.ts';
import { diskHolder } from '../gates/cordoned.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import { noHooks } from '../pools/hooks.ts';
import type { Membership } from '../pools/membership.ts';
import { startupOf } from '../pools/new-node.ts';
import { isReady } from '../pools/node-availability.ts';
import { reliesOnCordon } from '../pools/node-step.ts';
import { workOn } from '../pools/work.ts';
import { HELD_RETRY, type HolderParts, holdersOfNode } from './observe-holders.ts';

export interface DepartedNodesControllerParts extends HolderParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly membership: Membership;
  readonly leases: NodeLeases;
  readonly work: NodeWork;
  readonly remediation: Pick<MachineRemediation, 'endExemption'>;
  readonly events: EventRecorder;
  readonly options: Pick<RolloutOptions, 'reports'>;
}

const WHY = 'it is in no pool any more';
/** ms; a node that becomes Ready causes an event, so this is only for what causes none. */
const LOOK_AGAIN = 60_000;

/**
 * Cleans up nodes that are in no pool, which no pool's controller reconciles: nodes that lost their label during an
 * update, that two pools claim, that were deleted or whose pool was. Removes what Shale has put on them. Reports a node
 * whose startup taint nobody removes, because it is in no pool.
 */
export class DepartedNodesController {
  readonly #parts: DepartedNodesControllerParts;
  /** By name: the UIDs of the nodes whose startup taint was reported. */
  readonly #reported = new Map<string, string | undefined>();

  constructor(parts: DepartedNodesControllerParts) {
    this.#parts = parts;
  }

  /** @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { caches, membership, leases, work, remediation } = this.#parts;
    if (membership.poolOf(name) !== undefined) return done;
    const node = caches.nodes.get(name);
    const machineConfigNode = caches.machineConfigNodes.get(name);
    if (node === undefined || machineConfigNode === undefined) {
      if (leases.isOurs(name)) {
        await remediation.endExemption(leases.machineOf(name), signal);
        await leases.release(name, signal);
      }
      return this.#reportTaint(name, node);
    }
    const { cordon, grant } = workOn(node, machineConfigNode.spec);
    if (cordon === undefined && grant === undefined && !leases.isOurs(name)) {
      const isHeld = await this.#keepsHolder(node, machineConfigNode, signal);
      return isHeld ? requeueAfter(HELD_RETRY) : this.#reportTaint(name, node);
    }
    const piece = { node, machineConfigNode, onlyNode: false, hooks: noHooks };
    if (isReady(node)) {
      const holders = await holdersOfNode(this.#parts, node, signal);
      const why = reliesOnCordon({ cordon }, holders);
      if (why === undefined)
        return resultOf(await work.carryOut({ kind: 'back-out', why: WHY }, piece, signal));
      if (grant !== undefined || leases.isOurs(name))
        await work.carryOut({ kind: 'let-go', why }, piece, signal);
      return requeueAfter(HELD_RETRY);
    }
    // Perhaps in the middle of a reboot: nothing new begins there, and it stays cordoned until it is back.
    const { lookAgainAfter = LOOK_AGAIN } = await work.carryOut({ kind: 'suspend', why: WHY }, piece, signal);
    return requeueAfter(lookAgainAfter);
  }

  /** @returns whether somebody still holds the node of whom a pool told its daemon; no pool tells of the end. */
  async #keepsHolder(
    node: Node,
    machineConfigNode: MachineConfigNode,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (machineConfigNode.spec.heldBy === undefined) return false;
    if (diskHolder(await holdersOfNode(this.#parts, node, signal)) !== undefined) return true;
    await patchMachineConfigNode(this.#parts, machineConfigNode, { heldBy: null }, signal);
    return false;
  }

  /** Once for each Node, when it has been in the cluster for longer than a new node may take. */
  #reportTaint(name: string, node: Node | undefined): Result {
    const { events, options, now } = this.#parts;
    const startup = node === undefined ? undefined : startupOf(node);
    if (node === undefined || startup?.registeredAt === undefined) {
      this.#reported.delete(name);
      return done;
    }
    const wait = startup.registeredAt + options.reports.newNodeAfterSeconds * 1000 - now();
    if (wait > 0) return requeueAfter(wait);
    const { uid } = node.metadata;
    if (this.#reported.has(name) && this.#reported.get(name) === uid) return done;
    this.#reported.set(name, uid);
    events.warning(
      node,
      'NotConfigured',
      'No pod is scheduled on the node, because it still has its startup taint: it is in no MachineConfigPool. Label it for one, or remove the taint',
    );
    return done;
  }
}

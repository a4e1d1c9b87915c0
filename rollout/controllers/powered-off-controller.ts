import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { Caches } from '../caches.ts';
import { formatPoweredOff } from '../gates/powered-off.ts';
import type { NodeLeases } from '../node-leases.ts';
import { HELD_RETRY } from './observe-holders.ts';

export interface PoweredOffControllerParts {
  readonly caches: Pick<Caches, 'nodes'>;
  /** Those that are held for machines that were switched off. */
  readonly leases: Pick<NodeLeases, 'acquire' | 'isOurs' | 'release' | 'renewAfter'>;
}

/**
 * Holds the leases of nodes whose machines were switched off on request, until the request ends: remediators that
 * honour leases (medik8s' Node Health Check) would power them on. Somebody who has a lease already keeps it, and the
 * request has it afterwards. Nothing is remembered, so that the next operator goes on with it, or releases what is
 * left.
 */
export class PoweredOffController {
  readonly #parts: PoweredOffControllerParts;

  constructor(parts: PoweredOffControllerParts) {
    this.#parts = parts;
  }

  /** @param name of a node, which may be deleted. @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { caches, leases } = this.#parts;
    const node = caches.nodes.get(name);
    const why = node && formatPoweredOff(node);
    if (why === undefined) {
      if (leases.isOurs(name)) await leases.release(name, signal);
      return done;
    }
    const { by } = await leases.acquire(name, { reason: why }, signal);
    return requeueAfter(by === 'us' ? leases.renewAfter : HELD_RETRY);
  }
}

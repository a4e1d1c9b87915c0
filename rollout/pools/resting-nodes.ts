import type { PoolObservation } from './decide-pool.ts';
import type { NodeState } from './node-state.ts';

/** Nodes that are counted without being looked at: each runs what its pool wants and serves, and nothing is under way. */
export interface RestingCount {
  readonly nodes: number;
  readonly architectures: ReadonlySet<string>;
}

export const nobodyRests: RestingCount = { nodes: 0, architectures: new Set() };

interface Rest {
  readonly pool: string;
  readonly aim: string;
  readonly architecture: string | undefined;
}

/**
 * Which nodes rest. In a pool of thousands one node's event then costs a look at this node, not at all of them.
 *
 * Whatever changes about a node wakes it, and so does another aim of its pool. It is memory alone: a process that begins
 * anew looks at every node once.
 */
export class RestingNodes {
  readonly #rests = new Map<string, Rest>();
  readonly #wokenAt = new Map<string, number>();
  #clock = 0;

  /** @returns a moment, for {@link lay}. */
  now(): number {
    return this.#clock;
  }

  /** @param node something about it has changed. */
  wake(node: string): void {
    this.#clock += 1;
    this.#rests.delete(node);
    this.#wokenAt.set(node, this.#clock);
  }

  /** The node no longer exists. */
  forget(node: string): void {
    this.wake(node);
    this.#wokenAt.delete(node);
  }

  /** @param since the moment when the node was looked at: what changed after it is still to be seen. */
  lay(node: string, rest: Rest, since: number): void {
    if ((this.#wokenAt.get(node) ?? 0) <= since) this.#rests.set(node, rest);
  }

  /** @returns those of a pool's nodes that have to be looked at, and how many don't. @param aim {@link aimOf} the pool. */
  divide(
    nodes: Iterable<string>,
    pool: string,
    aim: string,
  ): { readonly awake: readonly string[]; readonly resting: RestingCount } {
    const awake: string[] = [];
    const architectures = new Set<string>();
    let count = 0;
    for (const node of nodes) {
      const rest = this.#rests.get(node);
      if (rest?.pool !== pool || rest.aim !== aim) {
        awake.push(node);
        continue;
      }
      count += 1;
      if (rest.architecture !== undefined) architectures.add(rest.architecture);
    }
    return { awake, resting: { nodes: count, architectures } };
  }
}

/** @returns all of a pool's wishes that a resting node's peace hangs on, as one text. */
export function aimOf({
  pool,
  target,
  policyDigest,
  settings,
}: Pick<PoolObservation, 'pool' | 'target' | 'policyDigest' | 'settings'>): string {
  const wanted = 'target' in target ? target.target : undefined;
  const same = target.kind === 'layered' ? [...target.sameContent].sort() : [];
  const { soak, softReboot } = settings;
  return JSON.stringify([pool.metadata.uid, target.kind, wanted, same, policyDigest, soak, softReboot]);
}

/**
 * @param soak ms for which an update must have held.
 * @param now ms since the epoch.
 * @returns whether nothing is to be done about a node until something about it changes.
 */
export function mayRest({ assigned, progress, lease, work, ...node }: NodeState, soak: number, now: number) {
  const hasHeld =
    progress.kind === 'updated' && (progress.since === undefined || progress.since + soak <= now);
  const isUntouched =
    lease.by === 'nobody' && lease.left !== true && work.cordon === undefined && work.grant === undefined;
  const serves = node.ready && node.schedulable && node.bootAgrees;
  const isFree = node.obstacle === undefined && node.away === undefined && !node.inMaintenance;
  return assigned && hasHeld && isUntouched && serves && isFree;
}

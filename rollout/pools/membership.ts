import { isDeepStrictEqual } from 'node:util';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { PoolDispute } from '../../machineconfig/pool-disputes.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import type { SettledCount } from './pool-observation.ts';

/** A node that is in no pool because several claim it: the problem names them. */
export interface Dispute extends PoolDispute {
  readonly problem: string;
  /** The pools that it would be in otherwise. */
  readonly lackedBy: readonly string[];
}

/**
 * Which node is in which pool, kept up to date by events: the event of one node costs the same in a cluster of ten
 * nodes and of thousands. Only a changed pool requires a pass over every node.
 */
export class Membership {
  #pools = new Map<string, MachineConfigPool>();
  readonly #nodes = new Map<string, Node>();
  readonly #poolOf = new Map<string, string>();
  readonly #members = new Map<string, PoolMembers>();
  readonly #disputes = new Map<string, Dispute>();

  /**
   * @returns the pools whose members changed: of one node at most the one it left and the one it came to; and those of
   *   a dispute about it that began, changed or ended.
   */
  setNode(node: Node): readonly string[] {
    const { name } = node.metadata;
    const known = this.#nodes.get(name);
    this.#nodes.set(name, node);
    const touched = known !== undefined && sameLabels(known, node) ? [] : this.#place(node);
    this.wake(name);
    return touched;
  }

  /** Marks the node as changed, for the next pass over its pool. @returns the pool. */
  wake(name: string): string | undefined {
    const pool = this.#poolOf.get(name);
    if (pool !== undefined) this.membersOf(pool).wake(name);
    return pool;
  }

  /** @returns the pool it was in, or those that claimed it. */
  removeNode(name: string): readonly string[] {
    this.#nodes.delete(name);
    return [...this.#dispute(name, undefined), ...this.#move(name, undefined)];
  }

  /** @returns the pools whose members changed, and those of disputes that did. */
  setPool(pool: MachineConfigPool): readonly string[] {
    const known = this.#pools.get(pool.metadata.name);
    this.#pools.set(pool.metadata.name, pool);
    const unchanged =
      known !== undefined &&
      JSON.stringify(known.spec.nodeSelector) === JSON.stringify(pool.spec.nodeSelector);
    return unchanged ? [] : this.#placeAll();
  }

  /** @returns the pools whose members changed, and those of disputes that did. */
  removePool(name: string): readonly string[] {
    this.#pools.delete(name);
    const touched = this.#placeAll();
    this.#members.delete(name);
    return touched;
  }

  /** @returns a pool's nodes. */
  membersOf(pool: string): PoolMembers {
    const known = this.#members.get(pool);
    if (known !== undefined) return known;
    const members = new PoolMembers();
    this.#members.set(pool, members);
    return members;
  }

  /** @returns the pool that a node is in, if any. */
  poolOf(node: string): string | undefined {
    return this.#poolOf.get(node);
  }

  /** @returns what keeps a node out of every pool, where more than one claims it. */
  disputeOf(node: string): Dispute | undefined {
    return this.#disputes.get(node);
  }

  /** @returns the nodes that a pool lacks because other custom pools claim them, too. */
  disputesOf(pool: string): readonly Dispute[] {
    return [...this.#disputes.values()].filter(({ lackedBy }) => lackedBy.includes(pool));
  }

  #placeAll(): readonly string[] {
    return [...new Set([...this.#nodes.values()].flatMap((node) => this.#place(node)))];
  }

  #place(node: Node): readonly string[] {
    const { name } = node.metadata;
    const claim = poolOfNode(node, [...this.#pools.values()]);
    if (claim.ok) return [...this.#dispute(name, undefined), ...this.#move(name, claim.pool?.metadata.name)];
    const { problem, pools, lackedBy } = claim;
    return [...this.#dispute(name, { node: name, problem, pools, lackedBy }), ...this.#move(name, undefined)];
  }

  /** @returns the pools that report another dispute than before. */
  #dispute(node: string, next: Dispute | undefined): readonly string[] {
    const before = this.#disputes.get(node);
    if (isDeepStrictEqual(before, next)) return [];
    if (next === undefined) this.#disputes.delete(node);
    else this.#disputes.set(node, next);
    return [...new Set([...(before?.lackedBy ?? []), ...(next?.lackedBy ?? [])])];
  }

  #move(node: string, to: string | undefined): readonly string[] {
    const from = this.#poolOf.get(node);
    if (from === to) return [];
    if (from !== undefined) this.membersOf(from).remove(node);
    if (to === undefined) this.#poolOf.delete(node);
    else {
      this.#poolOf.set(node, to);
      this.membersOf(to).wake(node);
    }
    return [from, to].filter((pool) => pool !== undefined);
  }
}

function sameLabels(a: Node, b: Node): boolean {
  return JSON.stringify(a.metadata.labels ?? {}) === JSON.stringify(b.metadata.labels ?? {});
}

/**
 * One pool's nodes, settled ones apart from those that have to be reconciled. In a pool of thousands the event of one
 * node then costs a pass over this node, and nothing is done for each of the others.
 *
 * Every change of a node wakes it, and so does another target of its pool. This is kept in memory only: a process that
 * starts reads every node once.
 */
export class PoolMembers {
  /** Each with the moment when something about it changed last. */
  readonly #active = new Map<string, number>();
  /** Each with its architecture. */
  readonly #settled = new Map<string, string | undefined>();
  readonly #architectures = new Map<string, number>();
  #fingerprint = '';
  #clock = 0;

  /** @returns the nodes' names, in no order. */
  *names(): Generator<string> {
    yield* this.#active.keys();
    yield* this.#settled.keys();
  }

  isSettled(node: string): boolean {
    return this.#settled.has(node);
  }

  /** @param node a member, new or known, about which something has changed. */
  wake(node: string): void {
    this.#unsettle(node);
    this.#clock += 1;
    this.#active.set(node, this.#clock);
  }

  remove(node: string): void {
    this.#unsettle(node);
    this.#active.delete(node);
  }

  /** @returns a moment, for {@link settle}. */
  now(): number {
    return this.#clock;
  }

  /** @param since the moment when the node was read: it stays awake if it has changed after that. */
  settle(node: string, architecture: string | undefined, since: number): void {
    const wokenAt = this.#active.get(node);
    if (wokenAt === undefined || wokenAt > since) return;
    this.#active.delete(node);
    this.#settled.set(node, architecture);
    this.#count(architecture, 1);
  }

  /** @returns the nodes that have to be reconciled, and how many don't. @param fingerprint fingerprintOf the pool. */
  divide(fingerprint: string): { readonly active: readonly string[]; readonly settled: SettledCount } {
    if (fingerprint !== this.#fingerprint) for (const node of [...this.#settled.keys()]) this.wake(node);
    this.#fingerprint = fingerprint;
    const settled = { nodes: this.#settled.size, architectures: new Set(this.#architectures.keys()) };
    return { active: [...this.#active.keys()], settled };
  }

  #unsettle(node: string): void {
    const architecture = this.#settled.get(node);
    if (this.#settled.delete(node)) this.#count(architecture, -1);
  }

  #count(architecture: string | undefined, by: 1 | -1): void {
    if (architecture === undefined) return;
    const nodes = (this.#architectures.get(architecture) ?? 0) + by;
    if (nodes === 0) this.#architectures.delete(architecture);
    else this.#architectures.set(architecture, nodes);
  }
}

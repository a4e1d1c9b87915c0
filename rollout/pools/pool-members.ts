import type { RestingCount } from './resting-nodes.ts';

/**
 * One pool's nodes, those that rest apart from those that have to be looked at. In a pool of thousands one node's event
 * then costs a look at this node, and nothing is done for each of the others, not even to pass them over.
 *
 * Whatever changes about a node wakes it, and so does another aim of its pool. It is memory alone: a process that begins
 * anew looks at every node once.
 */
export class PoolMembers {
  /** Each with the moment when something about it changed last. */
  readonly #awake = new Map<string, number>();
  /** Each with its architecture. */
  readonly #resting = new Map<string, string | undefined>();
  readonly #architectures = new Map<string, number>();
  #aim = '';
  #clock = 0;

  /** @returns the nodes' names, in no order. */
  *names(): Generator<string> {
    yield* this.#awake.keys();
    yield* this.#resting.keys();
  }

  rests(node: string): boolean {
    return this.#resting.has(node);
  }

  /** @param node a member, new or known, about which something has changed. */
  wake(node: string): void {
    this.#rise(node);
    this.#clock += 1;
    this.#awake.set(node, this.#clock);
  }

  remove(node: string): void {
    this.#rise(node);
    this.#awake.delete(node);
  }

  /** @returns a moment, for {@link lay}. */
  now(): number {
    return this.#clock;
  }

  /** @param since the moment when the node was looked at: what changed after it is still to be seen. */
  lay(node: string, architecture: string | undefined, since: number): void {
    const wokenAt = this.#awake.get(node);
    if (wokenAt === undefined || wokenAt > since) return;
    this.#awake.delete(node);
    this.#resting.set(node, architecture);
    this.#count(architecture, 1);
  }

  /** @returns those that have to be looked at, and how many don't. @param aim aimOf the pool. */
  divide(aim: string): { readonly awake: readonly string[]; readonly resting: RestingCount } {
    if (aim !== this.#aim) for (const node of [...this.#resting.keys()]) this.wake(node);
    this.#aim = aim;
    const resting = { nodes: this.#resting.size, architectures: new Set(this.#architectures.keys()) };
    return { awake: [...this.#awake.keys()], resting };
  }

  #rise(node: string): void {
    const architecture = this.#resting.get(node);
    if (this.#resting.delete(node)) this.#count(architecture, -1);
  }

  #count(architecture: string | undefined, by: 1 | -1): void {
    if (architecture === undefined) return;
    const nodes = (this.#architectures.get(architecture) ?? 0) + by;
    if (nodes === 0) this.#architectures.delete(architecture);
    else this.#architectures.set(architecture, nodes);
  }
}

/**
 * Pools whose rendering waits for more changes, or is under way because of them: what they have as their target may
 * change with it. Only for what no version in the pool's status tells; the operator renders every pool when it starts.
 * A pass over what nobody changed (a retry, a pool that reached its target) makes nothing due: it writes nothing, so
 * nothing would tell those who saw it that it is over.
 */
export class DueRenderings {
  readonly #due = new Set<string>();
  readonly #running = new Set<string>();

  /** Something changed that the pool is rendered from. */
  mark(pool: string): void {
    this.#due.add(pool);
  }

  /** @returns whether something that the pool is rendered from has changed, and its rendering is not over. */
  has(pool: string): boolean {
    return this.#due.has(pool) || this.#running.has(pool);
  }

  /**
   * Renders a pool. What changes meanwhile makes another rendering due.
   *
   * @throws what `work` throws; the rendering stays due then.
   */
  async during<T>(pool: string, work: () => Promise<T>): Promise<T> {
    const wasDue = this.#due.delete(pool);
    if (wasDue) this.#running.add(pool);
    try {
      return await work();
    } catch (error) {
      if (wasDue) this.#due.add(pool);
      throw error;
    } finally {
      this.#running.delete(pool);
    }
  }
}

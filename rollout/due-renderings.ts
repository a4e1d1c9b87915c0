/**
 * Pools whose rendering waits for more changes, or is under way: what they have as their target may change with it. Only
 * for what no version in the pool's status tells; the operator renders every pool when it starts.
 */
export class DueRenderings {
  readonly #due = new Set<string>();
  readonly #running = new Set<string>();

  /** Something changed that the pool is rendered from. */
  mark(pool: string): void {
    this.#due.add(pool);
  }

  /** @returns whether the pool's rendering is to come or is under way. */
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
    this.#running.add(pool);
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

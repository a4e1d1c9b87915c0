/** What a write on a node is for, the most urgent first: to end work, to take a node, to assign a target. */
const URGENCIES = ['ends', 'takes', 'assigns'] as const;
export type Urgency = (typeof URGENCIES)[number];

/**
 * The writes on nodes that are under way at the same time, of all pools together. An API server answers more requests
 * at once no sooner, only each of them later: what a node waits for that has finished its update would stand behind all
 * that the other pools begin.
 */
export class Lanes {
  #free: number;
  readonly #reserved: number;
  readonly #waiting: Readonly<Record<Urgency, (() => void)[]>> = { ends: [], takes: [], assigns: [] };

  /**
   * @param lanes.width how many there are.
   * @param lanes.reserved how many of them run only what ends work, which then waits for nothing that starts, however
   *   long that takes.
   */
  constructor({ width, reserved }: { readonly width: number; readonly reserved: number }) {
    this.#free = width;
    this.#reserved = reserved;
  }

  /** Runs the work in a lane: at once if one is free for it, otherwise by its urgency and in the order of the calls. */
  async run<T>(urgency: Urgency, work: () => Promise<T>): Promise<T> {
    if (this.#isFreeFor(urgency)) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting[urgency].push(resolve));
    try {
      return await work();
    } finally {
      this.#pass();
    }
  }

  #isFreeFor(urgency: Urgency): boolean {
    return this.#free > (urgency === 'ends' ? 0 : this.#reserved);
  }

  /** Hands the lane to the next in the queue that may have it. */
  #pass(): void {
    this.#free += 1;
    const urgency = URGENCIES.find((each) => this.#waiting[each].length > 0 && this.#isFreeFor(each));
    if (urgency === undefined) return;
    this.#free -= 1;
    this.#waiting[urgency].shift()?.();
  }
}

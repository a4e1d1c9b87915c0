/** What a write on a node is for, the most urgent first: to end work, to take a node, to assign a target. */
const URGENCIES = ['ends', 'takes', 'assigns'] as const;
export type Urgency = (typeof URGENCIES)[number];

/**
 * The writes on nodes that are under way at the same time, of all pools together. An API server answers more requests at
 * once no sooner, only each of them later: what a node waits for that has finished its update would stand behind all that
 * the other pools begin.
 */
export class Lanes {
  #free: number;
  readonly #waiting: Readonly<Record<Urgency, (() => void)[]>> = { ends: [], takes: [], assigns: [] };

  /** @param width how many there are. */
  constructor(width: number) {
    this.#free = width;
  }

  /** Runs the work in a lane: at once if one is free, otherwise by its urgency and in the order of the calls. */
  async run<T>(urgency: Urgency, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting[urgency].push(resolve));
    try {
      return await work();
    } finally {
      this.#pass();
    }
  }

  /** Hands the lane to whoever is next. */
  #pass(): void {
    const next = URGENCIES.map((urgency) => this.#waiting[urgency])
      .find((waiting) => waiting.length > 0)
      ?.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

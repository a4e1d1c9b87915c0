import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { diffViews } from '../model/patch.ts';
import { EMPTY_VIEW, type PageView } from '../model/view.ts';
import type { ClusterObjects } from '../read/read-view.ts';
import { readView } from '../read/read-view.ts';
import type { PageCaches } from './page-caches.ts';

/** ms between two looks at what changed, while somebody watches: faster than this nobody reads. */
const SHORTEST_PAUSE_MS = 100;
/** ms between them while nobody does; the timeline is kept all the same. */
const UNWATCHED_PAUSE_MS = 5_000;
/** A look may take a fifth of the process's time at most, however large the fleet. */
const PAUSE_PER_WORK = 4;
/** ms after which it is looked again without a change: leases run out and maintenance ends by the clock. */
const LONGEST_QUIET_MS = 5_000;
/** ms to ask for what is not watched. */
const ASK_DEADLINE_MS = 4_000;

interface LiveViewParts {
  readonly caches: PageCaches;
  /** @returns nodes with an active NodeMaintenance; what it throws is told on the page. */
  readonly inMaintenance: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly log: Logger;
  /** ms since the epoch; the clock, unless a test brings its own. */
  readonly now?: () => number;
}

/** The page's view, kept true by watches, and told to whoever follows it. */
export class LiveView {
  readonly #parts: LiveViewParts;
  readonly #followers = new Set<() => void>();
  #view: PageView | undefined;
  #changed = Promise.withResolvers<void>();
  #followed = Promise.withResolvers<void>();
  #inMaintenance: ReadonlySet<string> = new Set();
  #trouble: readonly string[] = [];
  /** Events by the view that their reader has: most have the one before. Views that nobody has are forgotten. */
  #patches = new WeakMap<PageView, string>();
  #snapshot: string | undefined;

  /** Call it before the caches are started: it adds its handlers to them. */
  constructor(parts: LiveViewParts) {
    this.#parts = parts;
    for (const cache of Object.values(parts.caches)) cache.onChange(() => this.#changed.resolve());
  }

  /** @returns the view; undefined until everything was listed once. */
  get current(): PageView | undefined {
    return this.#view;
  }

  /** @param onChange is called when there is another view. @returns what ends the following. */
  follow(onChange: () => void): () => void {
    this.#followers.add(onChange);
    this.#followed.resolve();
    return () => void this.#followers.delete(onChange);
  }

  /** @returns the whole view as JSON. */
  snapshot(): string {
    this.#snapshot ??= JSON.stringify(this.#view ?? EMPTY_VIEW);
    return this.#snapshot;
  }

  /** @returns what makes the present view of an earlier one, as JSON; undefined where it is the present one. */
  patchFrom(earlier: PageView): string | undefined {
    const known = this.#patches.get(earlier);
    if (known !== undefined) return known;
    const patch = diffViews(earlier, this.#view ?? EMPTY_VIEW);
    if (patch === undefined) return undefined;
    const text = JSON.stringify(patch);
    this.#patches.set(earlier, text);
    return text;
  }

  /** Looks at what changes until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(this.#parts.caches).map((cache) => cache.synced()));
    await Promise.all([this.#lookOnAndOn(signal), this.#askOnAndOn(signal)]);
  }

  async #lookOnAndOn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers();
      const began = performance.now();
      this.#look();
      const work = performance.now() - began;
      if (this.#followers.size === 0) {
        this.#followed = Promise.withResolvers();
        await pauseFor(UNWATCHED_PAUSE_MS, signal, this.#followed.promise);
      } else {
        await pauseFor(Math.max(SHORTEST_PAUSE_MS, PAUSE_PER_WORK * work), signal);
      }
      await pauseFor(LONGEST_QUIET_MS, signal, this.#changed.promise);
    }
  }

  /** What is not watched is asked for; that it can be asked also tells whether the cluster answers. */
  async #askOnAndOn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = [this.#inMaintenance, this.#trouble];
      try {
        const deadline = AbortSignal.any([signal, AbortSignal.timeout(ASK_DEADLINE_MS)]);
        this.#inMaintenance = await this.#parts.inMaintenance(deadline);
        this.#trouble = [];
      } catch (error) {
        if (signal.aborted) return;
        const why = error instanceof Error ? error.message : String(error);
        this.#trouble = [
          isForbidden(error)
            ? `NodeMaintenances can't be read: ${why}`
            : `The cluster does not respond, so this page may be out of date: ${why}`,
        ];
      }
      if (before[0] !== this.#inMaintenance || before[1] !== this.#trouble) this.#changed.resolve();
      await pauseFor(LONGEST_QUIET_MS, signal);
    }
  }

  #look(): void {
    const { log, now = Date.now } = this.#parts;
    try {
      const view = readView(this.#objects(), this.#view, now());
      if (view === this.#view) return;
      this.#view = view;
      this.#patches = new WeakMap();
      this.#snapshot = undefined;
    } catch (error) {
      log.error({ err: error }, 'the page could not be updated from the objects');
      return;
    }
    for (const follower of this.#followers) follower();
  }

  #objects(): ClusterObjects {
    const { caches } = this.#parts;
    return {
      pools: caches.pools.list(),
      machineConfigNodes: caches.machineConfigNodes.list(),
      nodes: caches.nodes.list(),
      builds: caches.machineOSBuilds.list(),
      leases: caches.leases.list(),
      machineConfiguration: caches.machineConfigurations
        .list()
        .find(({ metadata }) => metadata.name === MACHINE_CONFIGURATION),
      inMaintenance: this.#inMaintenance,
      trouble: this.#trouble,
    };
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403;
}

/** Waits, and no longer than the signal or the promise. */
async function pauseFor(ms: number, signal: AbortSignal, sooner?: Promise<void>): Promise<void> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  void sooner?.then(() => enough.abort());
  await delay(ms, undefined, { signal: either }).catch(() => undefined);
}

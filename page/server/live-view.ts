import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { diffViews } from '../model/patch.ts';
import { EMPTY_VIEW, type PageView } from '../model/view.ts';
import type { ClusterObjects } from '../read/read-view.ts';
import { readView } from '../read/read-view.ts';
import type { PageCaches } from './page-caches.ts';
import { pageJson } from './page-json.ts';

/** ms between two updates of the view while a browser follows it. */
const SHORTEST_PAUSE_MS = 100;
/** ms between them while no browser does; the timeline needs them. */
const UNWATCHED_PAUSE_MS = 5_000;
/** Pause per time of an update: updates take at most a fifth of the process's time, however large the cluster. */
const PAUSE_PER_WORK = 4;
/** ms after which the view is updated without a change: leases and maintenance expire. */
const LONGEST_PAUSE_MS = 5_000;
/** ms; deadline of the request for objects that are not watched. */
const POLL_DEADLINE_MS = 4_000;

interface LiveViewParts {
  readonly caches: PageCaches;
  /** @returns nodes with an active NodeMaintenance; the page shows the error that it throws. */
  readonly inMaintenance: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly log: Logger;
  /** The current time, ms since the epoch; default: the clock. */
  readonly now?: () => number;
}

/** Keeps the page's view up to date by watches, and notifies its followers. */
export class LiveView {
  readonly #parts: LiveViewParts;
  readonly #followers = new Set<() => void>();
  #view: PageView | undefined;
  #changed = Promise.withResolvers<void>();
  #followed = Promise.withResolvers<void>();
  #inMaintenance: ReadonlySet<string> = new Set();
  #trouble: readonly string[] = [];
  #silence: ClusterObjects['silence'];
  #lastAnswer: number;
  /**
   * Patches by the view that a reader has, which is mostly the previous one. Weak: views without readers are collected.
   */
  #patches = new WeakMap<PageView, string>();
  #snapshot: string | undefined;

  /** Adds handlers to the caches, so it must be called before they are started. */
  constructor(parts: LiveViewParts) {
    this.#parts = parts;
    this.#lastAnswer = this.#now();
    for (const cache of Object.values(parts.caches)) cache.onChange(() => this.#changed.resolve());
  }

  /** @returns the view; undefined until every kind was listed once. */
  get current(): PageView | undefined {
    return this.#view;
  }

  /** @param onChange is called when the view changes. @returns a function that removes the follower. */
  follow(onChange: () => void): () => void {
    this.#followers.add(onChange);
    this.#followed.resolve();
    return () => void this.#followers.delete(onChange);
  }

  /** @returns the whole view as JSON. */
  snapshot(): string {
    this.#snapshot ??= pageJson(this.#view ?? EMPTY_VIEW);
    return this.#snapshot;
  }

  /** @returns the patch from an earlier view to the current one as JSON; undefined when they are the same. */
  patchFrom(earlier: PageView): string | undefined {
    const known = this.#patches.get(earlier);
    if (known !== undefined) return known;
    const patch = diffViews(earlier, this.#view ?? EMPTY_VIEW);
    if (patch === undefined) return undefined;
    const text = pageJson(patch);
    this.#patches.set(earlier, text);
    return text;
  }

  /** Updates the view until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Object.values(this.#parts.caches).map((cache) => cache.synced()));
    await Promise.all([this.#updateOnChanges(signal), this.#pollMaintenance(signal)]);
  }

  async #updateOnChanges(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers();
      const began = performance.now();
      this.#update();
      const work = performance.now() - began;
      if (this.#followers.size === 0) {
        this.#followed = Promise.withResolvers();
        await pause(UNWATCHED_PAUSE_MS, signal, this.#followed.promise);
      } else {
        await pause(Math.max(SHORTEST_PAUSE_MS, PAUSE_PER_WORK * work), signal);
      }
      await pause(LONGEST_PAUSE_MS, signal, this.#changed.promise);
    }
  }

  /** Polls what is not watched, which also shows whether the API server responds. */
  async #pollMaintenance(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = [this.#inMaintenance, this.#trouble, this.#silence];
      try {
        const deadline = AbortSignal.any([signal, AbortSignal.timeout(POLL_DEADLINE_MS)]);
        this.#inMaintenance = await this.#parts.inMaintenance(deadline);
        this.#trouble = [];
        this.#clusterAnswered();
      } catch (error) {
        if (signal.aborted) return;
        const why = errorMessage(error);
        if (isForbidden(error)) {
          this.#trouble = [`NodeMaintenances can't be read: ${why}`];
          this.#clusterAnswered();
        } else this.#silence = { since: this.#lastAnswer, why };
      }
      const after = [this.#inMaintenance, this.#trouble, this.#silence];
      if (after.some((value, index) => value !== before[index])) this.#changed.resolve();
      await pause(LONGEST_PAUSE_MS, signal);
    }
  }

  /** A refusal is an answer, too. */
  #clusterAnswered(): void {
    this.#lastAnswer = this.#now();
    this.#silence = undefined;
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }

  #update(): void {
    const { log } = this.#parts;
    try {
      const view = readView(this.#objects(), this.#view, this.#now());
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
      silence: this.#silence,
    };
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403;
}

/** Waits until the time, the signal or the promise. */
async function pause(ms: number, signal: AbortSignal, sooner?: Promise<void>): Promise<void> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  void sooner?.then(() => enough.abort());
  await delay(ms, undefined, { signal: either }).catch(() => undefined);
}

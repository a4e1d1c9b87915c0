import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { contentsOfConfig } from '../../view/build-contents.ts';
import type { PoolChange } from '../model/view.ts';
import { changeNames, readChange } from '../read/read-change.ts';
import type { PageCaches } from './page-caches.ts';

/** The kinds that viewers must be allowed to list to see the lines of a change; they are no part of the view. */
export const CHANGE_KINDS: readonly Kind<KubernetesObject>[] = [MachineConfigs, PoolRevisions];

/** ms; deadline of all requests for one change. */
const DEADLINE_MS = 20_000;
const PARALLEL_READS = 8;
/** Changes that are kept, the latest used last: one for each pool of most clusters. */
const MOST_KEPT = 32;

/**
 * Reads what the rollout of a pool changes, when somebody asks: rendered configs may be megabytes, and are not watched
 * for the page. Their names are those of their content, so a change that was read once stays true.
 */
export class ChangeReader {
  readonly #client: ApiClient;
  readonly #caches: Pick<PageCaches, 'pools' | 'machineOSBuilds'>;
  readonly #kept = new Map<string, PoolChange>();
  readonly #pending = new Map<string, Promise<PoolChange | undefined>>();

  constructor(client: ApiClient, caches: Pick<PageCaches, 'pools' | 'machineOSBuilds'>) {
    this.#client = client;
    this.#caches = caches;
  }

  /** @returns undefined when there is no such pool. @throws ApiError, ApiUnreachable */
  async read(pool: string): Promise<PoolChange | undefined> {
    const pending = this.#pending.get(pool);
    if (pending !== undefined) return pending;
    const reading = this.#read(pool).finally(() => this.#pending.delete(pool));
    this.#pending.set(pool, reading);
    return reading;
  }

  async #read(name: string): Promise<PoolChange | undefined> {
    const pool = this.#caches.pools.list().find(({ metadata }) => metadata.name === name);
    if (pool === undefined) return undefined;
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const { items: revisions } = await this.#client.list(PoolRevisions, { signal });
    const names = changeNames(pool, revisions);
    const key = JSON.stringify([name, names]);
    const known = this.#kept.get(key);
    const change = known ?? readChange(name, names, await this.#configs(names, signal));
    this.#kept.delete(key);
    this.#kept.set(key, change);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) break;
      this.#kept.delete(oldest);
    }
    // An image is built after its config was rendered, and its contents are recorded then.
    return { ...change, contents: contentsOfConfig(this.#caches.machineOSBuilds.list(), name, names.to) };
  }

  /** Lists them one by one: to get them is another permission, which the page doesn't have. */
  async #configs({ from, to, sources }: ReturnType<typeof changeNames>, signal: AbortSignal) {
    const configs = new Map<string, MachineConfig>();
    const wanted = new Set([...(from === undefined ? [] : [from]), to, ...sources]);
    await inParallel([...wanted].filter(Boolean), PARALLEL_READS, async (name) => {
      const { items } = await this.#client.list(MachineConfigs, {
        fieldSelector: `metadata.name=${name}`,
        signal,
      });
      for (const config of items) configs.set(config.metadata.name, config);
    });
    return configs;
  }
}

import type { Logger } from 'pino';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { aboutChange, type EventRecorder } from '../../cluster/events.ts';
import { isNamedFor } from '../../machineconfig/rendered-name.ts';
import type { NodeCaches, PoolCaches } from '../caches.ts';
import { isOrphanedRevision } from '../pools/pool-record.ts';
import { expiredRenderings, isOwnedBy } from './pool-rendering.ts';
import { isOrphaned, withKeeper } from './rendered-owners.ts';

export interface RenderedGarbageParts {
  readonly client: ApiClient;
  readonly caches: NodeCaches & PoolCaches;
  readonly events: EventRecorder;
  readonly log: Logger;
}

/** Number of unused rendered configs that are kept per pool for rollbacks. */
const KEPT_RENDERINGS = 5;

/** Keeps the rendered configs that something uses, whatever becomes of their pool, and deletes others. */
export class RenderedGarbage {
  readonly #parts: RenderedGarbageParts;

  constructor(parts: RenderedGarbageParts) {
    this.#parts = parts;
  }

  /** @param target the pool's target, which the cache may not show yet. @throws ApiError */
  async collect(pool: MachineConfigPool, target: string | undefined, signal: AbortSignal): Promise<void> {
    const { caches } = this.#parts;
    const configs = caches.machineConfigs.list();
    // The pool itself is as it was observed.
    const pools = [...caches.pools.list(), pool];
    // Of what others created, nothing is counted: each of theirs would be a reason to delete one that was rendered.
    const rendered = configs.filter(
      (config) => isOwnedBy(pool, config) && isNamedFor(pool.metadata.name, config),
    );
    const orphans = configs.filter((config) => isOrphaned(config, pools));
    const inUse = new Set([...this.#namesInUse(pools), ...(target === undefined ? [] : [target])]);
    for (const config of [...rendered, ...orphans])
      if (inUse.has(config.metadata.name)) await this.#keep(config, signal);
    const expired = [
      ...expiredRenderings(rendered, inUse, KEPT_RENDERINGS),
      ...expiredRenderings(orphans, inUse, 0),
    ];
    for (const config of expired) await this.#delete(config, signal);
  }

  async #keep(config: MachineConfig, signal: AbortSignal): Promise<void> {
    const { client, caches } = this.#parts;
    const kept = withKeeper(config, caches.machineConfigurations.get(MACHINE_CONFIGURATION));
    if (kept === config) return;
    const { name, resourceVersion, ownerReferences } = kept.metadata;
    const body = { metadata: { resourceVersion, ownerReferences } };
    caches.machineConfigs.remember(
      await client.patch(MachineConfigs, name, { type: 'merge', body }, { signal }),
    );
  }

  async #delete(config: MachineConfig, signal: AbortSignal): Promise<void> {
    const { client, caches } = this.#parts;
    const { name } = config.metadata;
    try {
      await client.delete(MachineConfigs, name, { signal });
    } catch (error) {
      // Another pool's pass, or the garbage collector, was faster.
      if (!isNotFound(error)) throw error;
      return;
    }
    caches.machineConfigs.forget(config);
    aboutChange(this.#parts, name).log.info({ config: name }, 'deleted an unused rendered config');
  }

  #namesInUse(pools: readonly MachineConfigPool[]): ReadonlySet<string> {
    const { nodes, machineConfigNodes, machineOSBuilds, poolRevisions } = this.#parts.caches;
    const names = [
      ...nodes.list().map(({ metadata }) => metadata.annotations?.[annotations.provisionedConfig]),
      ...pools.flatMap(({ spec, status }) => [
        spec.configuration?.name,
        status?.configuration?.name,
        status?.rollbackDeadline?.config,
      ]),
      ...machineConfigNodes
        .list()
        .flatMap(({ spec, status }) => [
          spec.configVersion.desired,
          status?.configVersion?.current,
          status?.plan?.config,
        ]),
      ...machineOSBuilds.list().map(({ spec }) => spec.machineConfig.name),
      // What a pool may roll back to.
      ...poolRevisions
        .list()
        .filter((revision) => !isOrphanedRevision(revision, pools))
        .map(({ spec }) => spec.machineConfig.name),
    ];
    return new Set(names.filter((name) => name !== undefined));
  }
}

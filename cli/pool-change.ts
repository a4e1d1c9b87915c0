import { emptyNodeConfig } from '../machineconfig/empty-config.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { type OfflineCluster, renderOffline } from './offline-cluster.ts';

/** A pool that can't be rendered before or after a change. */
export interface BrokenPool {
  readonly pool: string;
  readonly problems: readonly string[];
}

/** A pool's two renderings. */
export interface PoolChange {
  readonly pool: string;
  /** Name of the rendered config before; absent for a pool that is new. */
  readonly from?: string;
  readonly to: string;
  readonly before: NodeConfig;
  readonly after: NodeConfig;
}

/**
 * Renders every pool as it is and as it will be.
 *
 * @param tell makes what a command says of a pool that can be rendered.
 */
export function poolChanges<T>(
  before: OfflineCluster,
  after: OfflineCluster,
  tell: (change: PoolChange) => T,
): (T | BrokenPool)[] {
  return after.pools.map((pool) => {
    const { name } = pool.metadata;
    const to = renderOffline(after, pool);
    if (!to.ok) return { pool: name, problems: to.problems };
    const known = before.pools.find((other) => other.metadata.name === name);
    const from = known === undefined ? undefined : renderOffline(before, known);
    if (from?.ok === false) return { pool: name, problems: from.problems };
    return tell({
      pool: name,
      ...(from === undefined ? {} : { from: from.rendered.metadata.name }),
      to: to.rendered.metadata.name,
      before: from?.config ?? emptyNodeConfig,
      after: to.config,
    });
  });
}

import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import type { WorkQueue } from '../../cluster/work-queue.ts';
import type { Caches } from '../caches.ts';
import type { PinnedImagesControllerParts } from './controller.ts';

/** Routes events to the queue of nodes: a node's own runtime decides with its pool what it is asked for. */
export function routePinnedImages(
  caches: Pick<Caches, 'machineConfigNodes' | 'pools' | 'nodes'> & Pick<PinnedImagesControllerParts, 'sets'>,
  queue: Pick<WorkQueue, 'add'>,
): void {
  const every = (pool?: string) => {
    for (const { metadata, spec } of caches.machineConfigNodes.list())
      if (pool === undefined || spec.pool.name === pool) queue.add(metadata.name);
  };
  caches.sets.onChange(() => every());
  caches.machineConfigNodes.onChange(({ object }) => queue.add(object.metadata.name));
  caches.pools.onChange(({ type, object, old }) => {
    if (type === 'DELETED' || old === undefined || pinnedInputs(old) !== pinnedInputs(object))
      every(object.metadata.name);
  });
  caches.nodes.onChange(({ object, old }) => {
    const version = ({ status }: Node) => status?.nodeInfo?.containerRuntimeVersion;
    if (old === undefined || version(old) !== version(object)) queue.add(object.metadata.name);
  });
}

function pinnedInputs(pool: MachineConfigPool): string {
  const stated = settingOf(pool, 'containerRuntime');
  const { spec } = pool;
  return JSON.stringify([stated, spec.machineConfigSelector, spec.pinnedImageSets]);
}

import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { NodeCaches, PoolCaches } from '../caches.ts';
import type { DueRenderings } from '../due-renderings.ts';
import { relabelRefusal } from '../pools/admit-image.ts';
import type { PoolMembers } from '../pools/membership.ts';
import { isRecordedBuild, type PoolRecord } from '../pools/pool-record.ts';
import { type BuiltImages, standardTarget } from '../pools/pool-target.ts';
import { type RollbackKnowledge, workingTarget } from '../pools/rollback.ts';
import { isRenderedFor } from '../rendering/pool-rendering.ts';
import { isRenderingDue } from './observe-dependencies.ts';

interface RollbackSubject {
  readonly pool: MachineConfigPool;
  readonly members: Pick<PoolMembers, 'names'>;
  readonly record: PoolRecord;
  readonly images: BuiltImages;
  readonly machineOSConfig: MachineOSConfig | undefined;
  readonly repositoryOwner: string | undefined;
}

interface RollbackParts {
  readonly caches: PoolCaches & Pick<NodeCaches, 'machineConfigNodes'>;
  readonly renderings: Pick<DueRenderings, 'has'>;
}

/** @returns what the pool's record, its builds and its nodes know about the targets that it can be rolled back to. */
export function rollbackKnowledge(
  { pool, members, record, images, machineOSConfig, repositoryOwner }: RollbackSubject,
  { caches, renderings }: RollbackParts,
): RollbackKnowledge {
  const nodes = [...members.names()].map((name) => caches.machineConfigNodes.get(name));
  return {
    record,
    ran: nodes.map((node) => workingTarget(node?.status)),
    images: {
      ...images,
      isRecorded: (build) => isRecordedBuild(record, build),
      checkOf: (build) => {
        const why = machineOSConfig && relabelRefusal(build, { machineOSConfig, repositoryOwner, record });
        return why === undefined ? images.checkOf(build) : { kind: 'refused', why };
      },
    },
    isRenderingDue: isRenderingDue(pool, { caches, renderings }),
    isKept: (image) =>
      images.builds.some(({ status }) => status?.digestedImagePushSpec === image) ||
      nodes.some((node) => hasImage(node, image)),
    standardTarget: (config) => {
      const rendered = caches.machineConfigs.get(config);
      return rendered !== undefined && isRenderedFor(pool, rendered)
        ? standardTarget(config, rendered)
        : undefined;
    },
  };
}

/** An image is deleted from its registry once it has no build, and no node runs it or should. */
function hasImage(node: MachineConfigNode | undefined, image: string): boolean {
  return node?.spec.configImage?.desiredImage === image || node?.status?.configImage?.currentImage === image;
}

import { outcomeOf } from '../../api/build-outcome.ts';
import { formatDuration } from '../../api/duration.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { plural } from '../../api/plural.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/**
 * Lists what the builder and the nodes last had of their registries. They may be in other networks than the user, so
 * that a test from this machine would prove nothing; `--probe` tests from a pod (probe/). What fails there is in
 * conditions (check-conditions.ts).
 *
 * @param now ms since the epoch.
 */
export function judgeContacts(cluster: ObservedCluster, now: number): Finding[] {
  return cluster.machineOSConfigs
    .map(({ spec }) => spec.machineConfigPool.name)
    .toSorted()
    .flatMap((pool) => [...ofBuilder(pool, cluster, now), ...ofNodes(pool, nodesOfPool(cluster, pool))]);
}

function ofBuilder(pool: string, { builds }: ObservedCluster, now: number): Finding[] {
  const { ok, warning } = findings('registries, from the builder');
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === pool);
  const newest = own.toSorted((a, b) => startOf(a) - startOf(b)).at(-1);
  if (newest === undefined)
    return [
      warning(
        `pool ${pool}: the builder has not attempted to push an image yet`,
        `run shale status ${pool} to see what it is waiting for`,
      ),
    ];
  switch (outcomeOf(newest)) {
    case 'Succeeded': {
      const ago = formatDuration(now - Date.parse(newest.status?.buildEnd ?? ''));
      return [ok(`pool ${pool}: the builder pushed ${newest.status?.digestedImagePushSpec}, ${ago} ago`)];
    }
    case 'Failed':
    case 'Interrupted':
      return [];
    case undefined:
      return [ok(`pool ${pool}: the builder is working on ${newest.metadata.name}`)];
  }
}

function ofNodes(pool: string, nodes: readonly MachineConfigNode[]): Finding[] {
  const { ok, warning } = findings('registries, from nodes');
  const wanting = nodes.filter(({ spec }) => spec.configImage !== undefined);
  if (wanting.length === 0) return [];
  const pulled = wanting.filter(hasPulled);
  return pulled.length === 0
    ? [
        warning(
          `pool ${pool}: no node has pulled its image yet`,
          `run shale status ${pool} to see what they are waiting for`,
        ),
      ]
    : [
        ok(
          `pool ${pool}: the target image was pulled by ${pulled.length} of ${plural(wanting.length, 'node')}`,
        ),
      ];
}

function hasPulled({ spec, status }: MachineConfigNode): boolean {
  const runs = status?.configImage?.currentImage === spec.configImage?.desiredImage;
  return runs || conditionIsTrue(status?.conditions, 'ImagePulledFromRegistry');
}

/** A build that has not started is the newest. */
function startOf({ metadata, status }: MachineOSBuild): number {
  const start = Date.parse(metadata.creationTimestamp ?? status?.buildStart ?? '');
  return Number.isNaN(start) ? Number.POSITIVE_INFINITY : start;
}

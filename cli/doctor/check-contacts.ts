import { outcomeOf } from '../../api/build-outcome.ts';
import { formatDuration } from '../../api/duration.ts';
import { type MachineConfigNode, PREPARE_FAILED } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { plural } from '../../api/plural.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { isAwaited } from '../../view/build-view.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/** Reasons of failed builds that the registry or the network path to it causes (docs/reference/build-failures.md). */
const REGISTRY_REASONS: ReadonlySet<string> = new Set([
  'RegistryUnavailable',
  'RegistryRefusedCredentials',
  'RegistryRefused',
  'SecretUnusable',
]);
/** Nodes named in a finding; the others are counted. */
const NAMED_NODES = 3;

/**
 * Checks that the builder and the nodes reach their registries, by what they last reported. They may be in other
 * networks than the user, so that a test from this machine would prove nothing; `--probe` tests from a pod (probe/).
 *
 * @param now ms since the epoch.
 */
export function judgeContacts(cluster: ObservedCluster, now: number): Finding[] {
  return cluster.machineOSConfigs
    .map(({ spec }) => spec.machineConfigPool.name)
    .toSorted()
    .flatMap((pool) => [
      ...judgeBuilder(pool, cluster, now),
      ...judgePulls(pool, nodesOfPool(cluster, pool)),
    ]);
}

function judgeBuilder(pool: string, cluster: ObservedCluster, now: number): Finding[] {
  const { ok, warning, failure } = findings('registries, from the builder');
  const own = cluster.builds.filter(({ spec }) => spec.machineOSConfig.name === pool);
  const newest = own.toSorted((a, b) => startOf(a) - startOf(b)).at(-1);
  if (newest === undefined) {
    const fix = `run shale status ${pool} to see what it is waiting for`;
    return [warning(`pool ${pool}: the builder has not attempted to push an image yet`, fix)];
  }
  const { name } = newest.metadata;
  const fix =
    'fix what the message names: the push Secret, the CAs (ConfigMap registry-cas), or the network path from the cluster to the registry';
  switch (outcomeOf(newest)) {
    case 'Succeeded': {
      const ago = formatDuration(now - Date.parse(newest.status?.buildEnd ?? ''));
      return [ok(`pool ${pool}: the builder pushed ${newest.status?.digestedImagePushSpec}, ${ago} ago`)];
    }
    case 'Failed': {
      const failed = conditionOf(newest, 'Failed');
      return REGISTRY_REASONS.has(failed?.reason ?? '') && isAwaited(newest, cluster)
        ? [failure(`pool ${pool}: build ${name}: ${failed?.message}`, fix)]
        : [];
    }
    case 'Interrupted':
      return [];
    case undefined: {
      const building = conditionOf(newest, 'Building');
      return building?.reason === 'Retrying'
        ? [warning(`pool ${pool}: build ${name}: ${building.message}`, fix)]
        : [ok(`pool ${pool}: the builder is working on ${name}`)];
    }
  }
}

function judgePulls(pool: string, nodes: readonly MachineConfigNode[]): Finding[] {
  const { ok, warning, failure } = findings('registries, from nodes');
  const wanting = nodes.filter(({ spec }) => spec.configImage !== undefined);
  if (wanting.length === 0) return [];
  const failing = wanting.flatMap((node) => {
    const prepared = node.status?.conditions?.find(({ type }) => type === 'UpdatePrepared');
    return prepared?.reason === PREPARE_FAILED ? [{ name: node.metadata.name, why: prepared.message }] : [];
  });
  const pulled = wanting.filter(hasPulled);
  const [first] = failing;
  if (first !== undefined) {
    const names = failing.slice(0, NAMED_NODES).map(({ name }) => name);
    const more = failing.length - names.length;
    return [
      failure(
        `pool ${pool}: ${names.join(', ')}${more > 0 ? ` and ${plural(more, 'more node')}` : ''} can't stage the image: ${first.why}`,
        "fix what the message names: the node's pull secret (Secret node-pull-secret), its CAs (ConfigMap registry-cas), or its network path to the registry",
      ),
    ];
  }
  const count = `${pulled.length} of ${plural(wanting.length, 'node')}`;
  return pulled.length === 0
    ? [
        warning(
          `pool ${pool}: no node has pulled its image yet`,
          `run shale status ${pool} to see what they are waiting for`,
        ),
      ]
    : [ok(`pool ${pool}: the target image was pulled by ${count}`)];
}

function hasPulled({ spec, status }: MachineConfigNode): boolean {
  const runs = status?.configImage?.currentImage === spec.configImage?.desiredImage;
  return runs || conditionIsTrue(status?.conditions, 'ImagePulledFromRegistry');
}

function conditionOf({ status }: MachineOSBuild, name: string) {
  return status?.conditions?.find(({ type }) => type === name);
}

/** A build that has not started is the newest. */
function startOf({ metadata, status }: MachineOSBuild): number {
  const start = Date.parse(metadata.creationTimestamp ?? status?.buildStart ?? '');
  return Number.isNaN(start) ? Number.POSITIVE_INFINITY : start;
}

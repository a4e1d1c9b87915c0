import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { plural } from '../../api/plural.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import { imagesBehind, outdated } from '../../rollout/pools/boot-image-lag.ts';
import { startupOf } from '../../rollout/pools/new-node.ts';
import { type PoolRecord, recordOf } from '../../rollout/pools/pool-record.ts';
import { objectNamed } from '../../view/named.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { nodeImageOf } from '../node/node-image.ts';
import { type Finding, findings, found, namedNodes } from './finding.ts';

/**
 * Checks what new nodes of each layered pool boot: that the pool's nodes go to the same image, and that the machines
 * that are joining now came with it. That the tag names it is a condition (BootImagePublished).
 *
 * @param revisions of all pools, by which the images between two are counted; undefined when the user may not list
 *   them.
 */
export function judgeBootImages(
  cluster: ObservedCluster,
  revisions: readonly PoolRevision[] | undefined,
): Finding[] {
  return cluster.machineOSConfigs
    .map(({ spec }) => spec.machineConfigPool.name)
    .toSorted()
    .flatMap((name) => judgePool(name, cluster, revisions));
}

function judgePool(
  name: string,
  cluster: ObservedCluster,
  revisions: readonly PoolRevision[] | undefined,
): Finding[] {
  const { ok, warning } = findings('new nodes');
  const pool = objectNamed(cluster.pools, name);
  if (pool === undefined) return [];
  const boots = nodeImageOf(pool, objectNamed(cluster.machineOSConfigs, name));
  if (boots.image === null) return [ok(`pool ${name}: new nodes boot the stock image: ${boots.why}`)];
  const { image, tag } = boots;
  const members = nodesOfPool(cluster, name).filter(({ spec }) => spec.configImage !== undefined);
  const record = revisions && recordOf(pool, revisions);
  const isAssigned = members.some(({ spec }) => spec.configImage?.desiredImage === image);
  const others = otherImages(name, image, cluster, record);
  const results = found(
    members.length > 0 &&
      !isAssigned &&
      warning(
        `pool ${name}: new nodes boot ${image}, to which none of its nodes is assigned${laterImages(record, image, members)}, so each is updated after it has joined`,
        `nothing while a rollout is under way; otherwise check what it waits for with shale status ${name}`,
      ),
    others.length > 0 &&
      warning(
        `pool ${name}: new nodes booted something else than ${image}: ${namedNodes(others)}`,
        `let the machines boot ${tag}, or renew the template that they are made from`,
      ),
  );
  return results.length === 0 ? [ok(`pool ${name}: new nodes boot ${image}`)] : results;
}

/** @returns how many images later what a pool's nodes are assigned is, in parentheses; empty after a rollback. */
function laterImages(
  record: PoolRecord | undefined,
  image: string,
  members: readonly MachineConfigNode[],
): string {
  if (record === undefined) return '';
  const assigned = members.flatMap(({ spec }) => spec.configImage?.desiredImage ?? []);
  const later = assigned.filter((each) => isLater(record, each, image));
  if (later.length === 0) return '';
  const most = Math.max(...later.map((each) => imagesBehind(record, image, each)));
  return ` (their target is ${plural(most, 'image')} later)`;
}

function isLater(record: PoolRecord, one: string, other: string): boolean {
  const images = record.flatMap(({ spec }) => spec.image ?? []);
  return images.lastIndexOf(one) > images.lastIndexOf(other);
}

/** Only of nodes that are new now: what one in service booted first is not known. @returns each with what it booted. */
function otherImages(
  pool: string,
  image: string,
  cluster: ObservedCluster,
  record: PoolRecord | undefined,
): string[] {
  return cluster.nodes
    .filter((node) => startupOf(node)?.isNew === true)
    .filter((node) => {
      const membership = poolOfNode(node, cluster.pools);
      return membership.ok && membership.pool?.metadata.name === pool;
    })
    .map(({ metadata }) => metadata.name)
    .toSorted()
    .flatMap((name) => {
      const node = objectNamed(cluster.machineConfigNodes, name);
      const lag = node && outdated(record ?? [], image, node);
      if (lag === undefined) return [];
      const what = lag.image === undefined ? 'the stock image' : 'another image';
      return [`${name} (${what}${record === undefined ? '' : `, ${plural(lag.behind, 'image')} behind`})`];
    });
}

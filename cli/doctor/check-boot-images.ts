import { plural } from '../../api/plural.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import { nodeImageOf } from '../node/node-image.ts';
import { named } from '../observe/named.ts';
import { nodesOfPool, type ObservedCluster } from '../observe/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/** New nodes named in a finding; the others are counted. */
const NAMED_NODES = 5;

/**
 * Checks what new nodes of each layered pool boot: that the tag names the image, that the pool's nodes go to the same, and that
 * the machines that are joining now came with it.
 */
export function judgeBootImages(cluster: ObservedCluster): Finding[] {
  return cluster.machineOSConfigs
    .map(({ spec }) => spec.machineConfigPool.name)
    .toSorted()
    .flatMap((name) => judgePool(name, cluster));
}

function judgePool(name: string, cluster: ObservedCluster): Finding[] {
  const { ok, warning } = findings('new nodes');
  const pool = named(cluster.pools, name);
  if (pool === undefined) return [];
  const boots = nodeImageOf(pool, named(cluster.machineOSConfigs, name));
  if (boots.kind === 'none') return [ok(`pool ${name}: new nodes boot the stock image: ${boots.why}`)];
  const { image, tag, unpublished } = boots;
  const members = nodesOfPool(cluster, name).filter(({ spec }) => spec.configImage !== undefined);
  const isAssigned = members.some(({ spec }) => spec.configImage?.desiredImage === image);
  const others = otherImages(name, image, cluster);
  const shown = others.slice(0, NAMED_NODES).join(', ');
  const more = others.length > NAMED_NODES ? ` and ${plural(others.length - NAMED_NODES, 'more node')}` : '';
  const results = [
    ...(unpublished === undefined
      ? []
      : [
          warning(
            `pool ${name}: ${tag} does not name ${image}: ${unpublished}`,
            'until it does, install machines by digest (shale node image)',
          ),
        ]),
    ...(members.length === 0 || isAssigned
      ? []
      : [
          warning(
            `pool ${name}: new nodes boot ${image}, to which none of its nodes is assigned, so each is updated after it has joined`,
            `nothing while a rollout is under way; otherwise check what it waits for with shale status ${name}`,
          ),
        ]),
    ...(others.length === 0
      ? []
      : [
          warning(
            `pool ${name}: new nodes booted something else than ${image}: ${shown}${more}`,
            `let the machines boot ${tag}, or renew the template that they are made from`,
          ),
        ]),
  ];
  return results.length === 0 ? [ok(`pool ${name}: new nodes boot ${image}`)] : results;
}

/** Only while a node has its startup taint: what one in service booted first is not known. */
function otherImages(pool: string, image: string, cluster: ObservedCluster): string[] {
  return cluster.nodes
    .filter(({ spec }) => spec?.taints?.some(isStartupTaint) === true)
    .filter((node) => {
      const found = poolOfNode(node, cluster.pools);
      return found.ok && found.pool?.metadata.name === pool;
    })
    .map(({ metadata }) => metadata.name)
    .filter((node) => {
      const { mode, configImage } = named(cluster.machineConfigNodes, node)?.status ?? {};
      return mode !== undefined && configImage?.currentImage !== image;
    })
    .toSorted();
}

import { plural } from '../../api/plural.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import { readSigning, readSwitch } from '../../opt-in/switch.ts';
import { nodeView } from '../../view/node-view.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings, found, namedNodes } from './finding.ts';

/**
 * Checks what no status reports: settings that leave images unsigned, nodes in no pool, and nodes without a status.
 *
 * @param now ms since the epoch.
 */
export function judgeNodes(cluster: ObservedCluster, now: number): Finding[] {
  const { ok, warning, failure } = findings('nodes');
  const silent = cluster.machineConfigNodes
    .map((node) => nodeView(node, cluster, now))
    .filter(({ state }) => state === 'silent')
    .map(({ name }) => name);
  const homeless = cluster.nodes
    .filter((node) => {
      const claim = poolOfNode(node, cluster.pools);
      return claim.ok && claim.pool === undefined;
    })
    .map(({ metadata }) => metadata.name);
  const isSigned = readSigning(cluster.switchMap) !== 'disabled';
  const results = found(
    !isSigned &&
      readSwitch(cluster.switchMap).kind !== 'off' &&
      warning(
        'images are not signed: anyone who may push to the image repository decides what nodes boot',
        'run shale enable --signing required',
      ),
    cluster.pools.length === 0 &&
      warning(
        'there is no MachineConfigPool, so no node is managed',
        'create one, such as the one in docs/install.md, "Pools"',
      ),
    homeless.length > 0 &&
      warning(
        `no pool selects ${namedNodes(homeless)}`,
        "label the nodes, or change a pool's node selector to match them",
      ),
    silent.length > 0 &&
      failure(
        `no daemon has reported yet from ${namedNodes(silent)}`,
        'check the log of the shale-daemon pod there: it names the backend (bootc, rpm-ostree, ostree) that is missing',
      ),
  );
  return results.length === 0
    ? [ok(`the daemons of ${plural(cluster.machineConfigNodes.length, 'node')} report`)]
    : results;
}

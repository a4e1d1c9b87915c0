import { beforeEach, expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, aPool, aRenderedConfig, condition } from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;
const POOLS = ['infra', 'storage'];
const WHY =
  'Node a is in no pool, because custom pools infra and storage both select it; change its labels, or the nodeSelector of a pool, so that only one of them does';

let cluster: MemoryCluster;
let operator: SteppedOperator;

beforeEach(() => {
  cluster = new MemoryCluster();
  operator = steppedOperator(cluster, Date.now);
  for (const name of POOLS) {
    cluster.put(MachineConfigs, aRenderedConfig(`rendered-${name}-2`));
    const pool = aPool(name, { configuration: { name: `rendered-${name}-2` } });
    const status = { observedMachineConfigs: configVersions(pool, []) };
    cluster.put(MachineConfigPools, { ...pool, status });
  }
});

function putNode(name: string, ...roles: readonly string[]): void {
  const labels = Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, '']));
  cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels } }));
}

async function look(): Promise<void> {
  for (let count = 0; count < 2; count += 1) {
    operator.catchUp();
    for (const name of POOLS) await operator.pools.reconcile(name, signal);
  }
}

const verdicts = (type: string) =>
  POOLS.map((name) => {
    const conditions = cluster.get(MachineConfigPools, name)?.status?.conditions ?? [];
    const { status, reason, message } = conditions.find((each) => each.type === type) ?? condition('none');
    return `${status} ${reason} ${message}`.trim();
  });

it('a node that two custom pools claim keeps both from being Ready, until only one claims it', async () => {
  putNode('a', ...POOLS);
  await look();
  const degraded = `True NodesInSeveralPools ${WHY}`;
  expect(verdicts('Degraded')).toEqual([degraded, degraded]);
  const notReady = `False NodesInSeveralPools ${WHY}`;
  expect(verdicts('Ready')).toEqual([notReady, notReady]);
  putNode('a', 'infra');
  await look();
  expect(verdicts('Degraded')).toEqual(['False AsExpected', 'False AsExpected']);
});

it('the other nodes of the pools are updated all the same', async () => {
  putNode('a', ...POOLS);
  putNode('b', 'infra');
  const staged = { config: 'rendered-infra-2', staged: true, actions: [], causes: [], source: 'test' };
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode(
      'b',
      { pool: { name: 'infra' }, configVersion: { desired: 'rendered-infra-1' } },
      { plan: staged, conditions: [condition('NodeDegraded', 'False')] },
    ),
  );
  await look();
  await look();
  expect(cluster.get(MachineConfigNodes, 'b')?.spec.grant).toMatchObject({ config: 'rendered-infra-2' });
  expect(verdicts('Reconciling')[0]).toMatch(/^True NodesUpdating/);
  expect(verdicts('Ready')[0]).toMatch(/^False NodesUpdating/);
  expect(verdicts('Degraded')[0]).toMatch(/^True NodesInSeveralPools/);
});

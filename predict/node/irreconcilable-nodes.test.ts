import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { formatPlan, formatPlanMarkdown } from '../../cli/plan/plan-text.ts';
import { machineConfigNode, node, pool } from '../../test/fixtures/observed-cluster.ts';
import { planned } from '../../test/fixtures/planned.ts';
import type { ClusterState } from '../objects/cluster-state.ts';
import { offlineCluster } from '../objects/offline-cluster.ts';

describe('a config that only Ignition can apply', () => {
  const config = (name: string, storage: Readonly<Record<string, unknown>>): MachineConfig => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: { config: { ignition: { version: '3.5.0' }, storage } },
  });
  const plain = config('00-plain', { files: [{ path: '/etc/a', contents: { source: 'data:,' } }] });
  const disks = config('50-disks', { disks: [{ device: '/dev/sdb' }] });
  const changed = () => offlineCluster([pool([]), plain, disks]);
  const plan = (before: readonly MachineConfig[], live?: Partial<ClusterState>) =>
    planned(offlineCluster([pool([]), ...before]), changed(), {
      cluster: live && { rendered: new Map(), machineConfigNodes: [], nodes: [], builds: [], ...live },
    });
  const runs = (current: string) => ({ configVersion: { current, desired: current } });
  const rule = /can't be applied to a running node, .*MachineConfig 50-disks: \$\.storage\.disks: /;

  test('is refused for a pool whose nodes ran another, when only files are known', () => {
    expect(plan([plain])).toMatchObject([
      { problems: [expect.stringMatching(/^can't be applied to running/)] },
    ]);
  });

  test('is a warning for a pool that is new', () => {
    const [worker] = planned(offlineCluster([]), changed());
    expect(worker).toMatchObject({ warnings: [expect.stringMatching(rule)] });
  });

  test('names the nodes of a cluster that keep what they run, and not those that were provisioned with it', () => {
    const [first] = plan([plain, disks], {});
    const to = first !== undefined && 'to' in first ? first.to : '';
    const nodes = ['fresh', 'other', 'done', 'provisioned'];
    const plans = plan([plain, disks], {
      machineConfigNodes: [
        machineConfigNode('fresh'),
        machineConfigNode('other', runs('rendered-infra-1')),
        machineConfigNode('done', runs(to)),
        machineConfigNode('provisioned'),
      ],
      nodes: nodes.map((name) =>
        node(name, name === 'provisioned' ? { [annotations.provisionedConfig]: to } : {}),
      ),
    });
    expect(PlanOutput.parse(plans)).toMatchObject([
      { irreconcilable: [{ nodes: ['fresh', 'other'], why: expect.stringMatching(rule) }] },
    ]);
    expect(formatPlan(plans, { diffs: 'none' })).toMatch(
      /\n {2}refused: nodes fresh, other: rendered-worker-/,
    );
    expect(formatPlanMarkdown(plans, { diffs: 'none' })).toMatch(/\n- \*\*refused:\*\* nodes fresh, other: /);
  });
});

import { describe, expect, it, test } from 'vitest';
import { labels } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import { DEFAULT_LIMITS } from '../machineconfig/ignition/contents.ts';
import { changedCluster, offlineCluster } from './objects/offline-cluster.ts';
import { warningsOf } from './objects/offline-problems.ts';
import { asRendered, poolChanges } from './pool-change.ts';

const MCO = 'machineconfiguration.openshift.io/v1';
const selectorOf = (role: string) => ({ machineConfigSelector: { matchLabels: { [labels.role]: role } } });
const object = (kind: string, name: string, role: string, spec: unknown): KubernetesObject =>
  ({
    apiVersion: MCO,
    kind,
    metadata: { name, labels: { [labels.role]: role } },
    spec,
  }) as KubernetesObject;
const pool = (name: string) => object('MachineConfigPool', name, name, selectorOf(name));
const config = (name: string, role: string) =>
  object('MachineConfig', name, role, { kernelArguments: [name] });

/** @returns each pool with its problems, `changes` or `same`. */
function plan(before: readonly KubernetesObject[], change: readonly KubernetesObject[], isLive: boolean) {
  const reading = { limits: DEFAULT_LIMITS, isLive };
  const after = changedCluster(before, change, { prune: true, ...reading });
  const described = poolChanges(asRendered(offlineCluster(before, reading)), after, (ask) => ({
    pool: ask.pool,
    problems: [ask.from === ask.to ? 'same' : 'changes'],
  }));
  return { pools: described.map(({ pool, problems }) => `${pool}: ${problems.join()}`), after };
}

test.each<[string, boolean, string[]]>([
  ['pools are made up for the roles of files', false, ['infra: changes', 'worker: same']],
  ['a cluster has the pools that it has', true, ['worker: same']],
])('%s', (_what, isLive, expected) => {
  const { pools, after } = plan([pool('worker')], [config('85-infra', 'infra')], isLive);
  expect(pools).toEqual(expected);
  const unselected = 'MachineConfig 85-infra: no MachineConfigPool selects it';
  expect(warningsOf(after)).toEqual(isLive ? [unselected] : []);
});

describe('a pool without MachineConfigs', () => {
  it('asks nothing of its nodes', () => {
    expect(plan([pool('worker')], [], true).pools).toEqual(['worker: same']);
  });

  it('takes its first one', () => {
    expect(plan([pool('worker')], [config('a', 'worker')], true).pools).toEqual(['worker: changes']);
  });

  it('does not lose its last one', () => {
    const [line] = plan([pool('worker'), config('a', 'worker')], [], true).pools;
    expect(line).toMatch(/^worker: pool\/worker: selects no MachineConfig; expected .* keep one/);
  });
});

import { expect, test } from 'vitest';
import type { DaemonSet, Deployment } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { DAEMON_SET, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { poolObjects } from './cluster-objects.ts';
import { missingParts } from './until-ready.ts';

const operator = workload<Deployment>(OPERATOR_DEPLOYMENT, { availableReplicas: 1 });
const daemons = workload<DaemonSet>(DAEMON_SET, { desiredNumberScheduled: 4, numberReady: 4 });
const pools = poolObjects().map((pool) => updated(pool, 2));

test('nothing is missing once operator and daemons run and every pool is Updated', () => {
  expect(missingParts({ pools, deployments: [operator], daemonSets: [daemons], down: 0 })).toEqual([]);
});

test.each([
  ['an operator that has not started', { deployments: [workload(OPERATOR_DEPLOYMENT, {})] }, 'operator'],
  ['no operator at all', { deployments: [] }, 'operator'],
  [
    'a daemon that has not started',
    { daemonSets: [workload(DAEMON_SET, { desiredNumberScheduled: 4, numberReady: 3 })] },
    'daemons',
  ],
  ['daemons that nobody has scheduled', { daemonSets: [workload(DAEMON_SET, undefined)] }, 'daemons'],
  ['a pool that does not exist', { pools: pools.slice(1) }, 'pool worker'],
  ['a pool without a rendered config', { pools: poolObjects() }, 'pool worker'],
  [
    'a pool that was Updated before its last change',
    { pools: pools.map((pool) => updated(pool, 1)) },
    'pool infra',
  ],
] as const)('%s is missing', (_, change, part) => {
  const parts = { pools, deployments: [operator], daemonSets: [daemons], down: 0, ...change };
  expect(
    missingParts(parts as typeof parts & { deployments: Deployment[]; daemonSets: DaemonSet[] }).join(),
  ).toContain(part);
});

test.each([
  [1, 3, 2, []],
  [1, 2, 2, ['not all node daemons are running']],
  [1, 3, 1, ['pool worker is not Updated', 'pool infra is not Updated']],
])('without %i machine: %i daemons and %i of 3 nodes', (down, numberReady, updatedMachineCount, missing) => {
  const partly = pools.map((pool) => ({
    ...pool,
    status: { observedGeneration: 2, conditions: [], machineCount: 3, updatedMachineCount },
  }));
  const some = workload<DaemonSet>(DAEMON_SET, { desiredNumberScheduled: 4, numberReady });
  expect(missingParts({ pools: partly, deployments: [operator], daemonSets: [some], down })).toEqual(missing);
});

function workload<T>(name: string, status: unknown): T {
  return { metadata: { name }, spec: {}, status } as T;
}

function updated({ metadata, ...pool }: MachineConfigPool, observedGeneration: number): MachineConfigPool {
  const condition = {
    type: 'Updated',
    status: 'True',
    reason: 'Done',
    message: '',
    lastTransitionTime: '',
  } as const;
  return {
    ...pool,
    metadata: { ...metadata, generation: 2 },
    spec: { ...pool.spec, configuration: { name: `rendered-${metadata.name}` } },
    status: { observedGeneration, conditions: [condition] },
  };
}

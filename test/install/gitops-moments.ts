import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { Condition } from '../../api/object.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { type BuildPhase, buildStatus } from '../../builder/status.ts';
import { setReadiness } from '../../cluster/readiness.ts';
import { type PoolProgress, poolReadiness } from '../../rollout/pools/pool-readiness.ts';
import { aBuild, aPool } from '../fixtures/objects.ts';

/** The health of a custom resource in Flux (RFC 0009); `Unknown` is what can't be evaluated yet, and is waited for. */
type FluxHealth = 'Current' | 'InProgress' | 'Failed' | 'Unknown';
/** The health of a resource in Argo CD. */
type ArgoHealth = 'Healthy' | 'Progressing' | 'Degraded' | 'Suspended';

/** A pool as a GitOps tool finds it, and what the tools say (docs/how-to/gitops-health.md). */
type PoolMoment = readonly [what: string, pool: MachineConfigPool, flux: FluxHealth, argo: ArgoHealth];

const NOW = '2026-06-01T00:00:00Z';
const IMAGE = parseDigestedPullspec(`registry.example/os/worker@sha256:${'a'.repeat(64)}`);

interface Told {
  readonly updated?: 'True';
  readonly updating?: readonly [status: 'True' | 'False', reason: string];
  readonly degraded?: string;
  readonly progress?: Partial<PoolProgress>;
  /** Of the spec; the status is about generation 2. */
  readonly generation?: number;
}

/** @returns a pool with the conditions that the operator sets. */
function poolThat(told: Told): MachineConfigPool {
  const {
    updated = 'False',
    updating = ['False', 'NodesOutstanding'],
    degraded,
    progress,
    generation = 2,
  } = told;
  const own: Condition[] = [
    { type: 'Updated', status: updated, reason: updated === 'True' ? 'AllNodesUpdated' : 'NodesOutstanding' },
    { type: 'Updating', status: updating[0], reason: updating[1] },
    { type: 'Degraded', status: degraded === undefined ? 'False' : 'True', reason: degraded ?? 'AsExpected' },
  ].map((each) => ({
    ...each,
    status: each.status as Condition['status'],
    message: each.reason,
    lastTransitionTime: NOW,
  }));
  const readiness = poolReadiness(own, {
    renderingDue: false,
    stepsFail: false,
    nodesFailed: false,
    ...progress,
  });
  const pool = aPool('worker');
  return {
    ...pool,
    metadata: { ...pool.metadata, generation },
    status: { observedGeneration: 2, conditions: setReadiness(own, readiness, 2, new Date(NOW)) },
  };
}

export const POOL_MOMENTS: readonly PoolMoment[] = [
  ['without a status', aPool('worker'), 'Unknown', 'Progressing'],
  ['whose status has no conditions', { ...aPool('worker'), status: {} }, 'InProgress', 'Progressing'],
  ['that is updated', poolThat({ updated: 'True' }), 'Current', 'Healthy'],
  [
    'that was updated before its last change',
    poolThat({ updated: 'True', generation: 3 }),
    'InProgress',
    'Progressing',
  ],
  [
    'whose MachineConfigs are not rendered yet',
    poolThat({ updated: 'True', progress: { renderingDue: true } }),
    'InProgress',
    'Progressing',
  ],
  ['whose image is built', poolThat({ updating: ['True', 'Building'] }), 'InProgress', 'Progressing'],
  ['whose nodes are updated', poolThat({ updating: ['True', 'NodesUpdating'] }), 'InProgress', 'Progressing'],
  [
    'that waits for its maintenance window',
    poolThat({ updating: ['True', 'AwaitingMaintenanceWindow'] }),
    'InProgress',
    'Progressing',
  ],
  [
    'that waits for reboots',
    poolThat({ updating: ['True', 'AwaitingReboots'] }),
    'InProgress',
    'Progressing',
  ],
  ['that is paused', poolThat({ updating: ['False', 'Paused'] }), 'InProgress', 'Suspended'],
  [
    'whose build failed',
    poolThat({ updating: ['False', 'BuildFailed'], degraded: 'Degraded' }),
    'Failed',
    'Degraded',
  ],
  [
    'a node of which failed',
    poolThat({
      updating: ['True', 'NodesUpdating'],
      degraded: 'NodesDegraded',
      progress: { nodesFailed: true },
    }),
    'Failed',
    'Degraded',
  ],
  [
    'whose failed node is on its way to another target',
    poolThat({ updating: ['True', 'NodesUpdating'], degraded: 'NodesDegraded' }),
    'InProgress',
    'Progressing',
  ],
  [
    'that lacks a node which another pool selects, too',
    poolThat({ updated: 'True', degraded: 'NodesInSeveralPools' }),
    'Failed',
    'Degraded',
  ],
  [
    'that lacks such a node, while others are updated',
    poolThat({ updating: ['True', 'NodesUpdating'], degraded: 'NodesInSeveralPools' }),
    'InProgress',
    'Progressing',
  ],
  ['that was rolled back', poolThat({ updating: ['False', 'RolledBack'] }), 'Failed', 'Degraded'],
  [
    'whose failure is fixed, and not observed yet',
    poolThat({ degraded: 'Degraded', generation: 3 }),
    'InProgress',
    'Progressing',
  ],
];

function buildThat(phase: BuildPhase): MachineOSBuild {
  const build = aBuild('worker-1', 'rendered-worker-1');
  return {
    ...build,
    metadata: { ...build.metadata, generation: 1 },
    status: buildStatus(undefined, phase, NOW, 1),
  };
}

export const BUILD_MOMENTS: readonly (readonly [string, MachineOSBuild, ArgoHealth])[] = [
  ['without a status', aBuild('worker-1', 'rendered-worker-1'), 'Progressing'],
  ['that runs', buildThat({ kind: 'started' }), 'Progressing'],
  [
    'that is tried again',
    buildThat({ kind: 'retrying', attempt: 2, reason: 'APIServerUnavailable', why: 'HTTP 503', inMs: 1_000 }),
    'Progressing',
  ],
  [
    'that failed',
    buildThat({ kind: 'failed', reason: 'ContainerfileFailed', message: 'HTTP 403' }),
    'Degraded',
  ],
  [
    'that succeeded',
    buildThat({
      kind: 'succeeded',
      image: IMAGE,
      baseImage: IMAGE,
      way: 'Append',
      transitions: [],
      summary: 'pushed',
      bytes: { sent: 1, mounted: 0 },
    }),
    'Healthy',
  ],
];

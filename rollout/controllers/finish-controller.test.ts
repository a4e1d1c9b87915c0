import { beforeEach, describe, expect, it } from 'vitest';
import { Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import {
  NEW,
  OLD,
  RolloutOfPool,
  runs,
  STAGED,
  UPDATED,
  WORKER,
} from '../../test/fixtures/fleet/rollout-of-pool.ts';
import { aNode, condition } from '../../test/fixtures/objects.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions as options } from '../options.ts';

const signal = new AbortController().signal;
const US = options.leases.holder;
const GRANT = { level: 'Disrupt', config: NEW, leaseHolder: US } as const;

let world: RolloutOfPool;

beforeEach(() => {
  world = new RolloutOfPool();
});

/** A cordoned node in the middle of an update. */
function putNode(
  status: Parameters<RolloutOfPool['putNode']>[1],
  {
    labels = { [WORKER]: '' },
    status: ofNode,
  }: { labels?: Record<string, string>; status?: Node['status'] } = {},
  spec: object = { grant: GRANT },
): void {
  world.putNode('a', status, spec);
  const metadata = {
    name: 'a',
    uid: 'uid-a',
    labels,
    annotations: { [annotations.cordonedByShale]: 'true' },
  };
  const more = ofNode === undefined ? {} : { status: ofNode };
  world.cluster.put(Nodes, aNode('a', { metadata, spec: { unschedulable: true }, ...more }));
  putLease();
}

function putLease(holderIdentity = US): void {
  const time = new Date(world.now).toISOString();
  world.cluster.put(Leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseNameOf('a'), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'uid-lease' },
    spec: { holderIdentity, leaseDurationSeconds: 300, acquireTime: time, renewTime: time },
  });
}

/** @returns how many writes it takes. */
async function finish(): Promise<number> {
  world.operator.catchUp();
  const before = world.cluster.writes;
  expect(await world.operator.finish.reconcile('a', signal)).toEqual({ kind: 'done' });
  return world.cluster.writes - before;
}

const isCordoned = () => world.cluster.get(Nodes, 'a')?.spec?.unschedulable === true;
const lease = () => world.cluster.get(Leases, leaseNameOf('a'));

it('a node that runs its target and serves is finished without a pass over its pool', async () => {
  putNode(UPDATED);
  await finish();
  expect(world.grantOf('a')).toBeUndefined();
  expect(isCordoned()).toBe(false);
  expect(lease()).toBeUndefined();
  expect(world.reasons()).toEqual(['Normal a Uncordon']);
  expect(await finish()).toBe(0);
});

describe('is left to the pass over its pool', () => {
  const ready = condition('Ready');
  it.each([
    ['a node that has not been granted anything', () => putNode(UPDATED, {}, {})],
    ['one that is still at work', () => putNode(STAGED)],
    ['one that runs another config', () => putNode({ ...UPDATED, ...runs(OLD) })],
    [
      'one that is not Ready',
      () => putNode(UPDATED, { status: { conditions: [condition('Ready', 'False')] } }),
    ],
    [
      'one whose kubelet reports the boot before',
      () =>
        putNode(
          { ...UPDATED, bootID: 'after' },
          { status: { conditions: [ready], nodeInfo: { bootID: 'before' } } },
        ),
    ],
    ['one that is in no pool', () => putNode(UPDATED, { labels: {} })],
    [
      'one whose lease another holds',
      () => {
        putNode(UPDATED);
        putLease('somebody');
      },
    ],
    [
      'one that somebody repairs',
      () => {
        putNode(UPDATED);
        const node = world.cluster.get(Nodes, 'a') as Node;
        const taints = [{ key: 'medik8s.io/remediation', effect: 'NoExecute' }];
        world.cluster.put(Nodes, { ...node, spec: { ...node.spec, taints } });
      },
    ],
    [
      'one that somebody maintains',
      () => {
        putNode(UPDATED);
        const kind = {
          group: 'nodemaintenance.medik8s.io',
          version: 'v1beta1',
          kind: 'NodeMaintenance',
          plural: 'nodemaintenances',
          namespaced: false,
        };
        const maintenance = { apiVersion: 'nodemaintenance.medik8s.io/v1beta1', kind: 'NodeMaintenance' };
        world.cluster.put(kind, {
          ...maintenance,
          metadata: { name: 'm' },
          spec: { nodeName: 'a' },
        });
      },
    ],
    [
      'one that a hook holds',
      () => {
        world.putPool({}, { shale: { hooksAfter: ['gpu'] } });
        putNode(UPDATED);
      },
    ],
  ])('%s', async (_what, put) => {
    put();
    expect(await finish()).toBe(0);
    expect(isCordoned()).toBe(true);
  });

  it('and one that does not exist', async () => {
    expect(await finish()).toBe(0);
  });
});

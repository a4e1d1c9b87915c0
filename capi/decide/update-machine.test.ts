import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import {
  aConfig,
  aDrivenPool,
  aMachine,
  aNodeAt,
  aWorkload,
  handedOverTo,
  NODE,
  OWN_CONFIG,
  observed,
  POOL,
  someParts,
  streams,
  targetOf,
} from '../../test/fixtures/capi/observed-machine.ts';
import { aPool, condition, image, RESTART } from '../../test/fixtures/objects.ts';
import { partKey } from '../mapping/machine-parts.ts';
import { machineConfigOf } from '../mapping/owned-config.ts';
import { decideUpdate, type UpdateDecision } from './update-machine.ts';

const BOOTSTRAP = { '/etc/bootstrap.sh': 'never owned' };
const before = someParts({ files: { '/etc/chrony.conf': 'pool a', ...BOOTSTRAP } });
const after = someParts({ files: { '/etc/chrony.conf': 'pool b', ...BOOTSTRAP } });
const chrony = new Set([partKey({ kind: 'file', path: '/etc/chrony.conf' })]);
const own = machineConfigOf(after, chrony, POOL) as MachineConfig;
const admins = aConfig('00-admin', '/etc/admin.conf', 'a');
const pool = aDrivenPool();
const unwritten = [pool, admins];
const written = [pool, admins, own];
const T0 = targetOf(unwritten);
const T1 = targetOf(written);

/** @returns what is written, by kind and by what it is for. */
function writesOf({ writes }: UpdateDecision): readonly string[] {
  return writes.map((write) => {
    switch (write.kind) {
      case 'apply-config':
        return `apply ${write.config.metadata.name}`;
      case 'delete-config':
        return `delete ${write.name}`;
      case 'set-stream':
        return `stream ${write.pool} ${write.stream}`;
      case 'hand-over':
      case 'take-back':
        return `${write.kind} ${write.node.metadata.name}`;
      default:
        return write.kind;
    }
  });
}

function says({ answer }: UpdateDecision): string {
  return `${answer.kind}: ${answer.message}`;
}

const granted = (node: MachineConfigNode): MachineConfigNode => ({
  ...node,
  spec: { ...node.spec, grant: { level: 'Disrupt', config: T1, leaseHolder: 'shale-operator' } },
});

describe('the steps of an update', () => {
  const at = (
    machineConfigNode: MachineConfigNode,
    objects: readonly KubernetesObject[] = written,
    isHeldOff = false,
  ) => decideUpdate(observed(after, [before], aWorkload({ objects, machineConfigNode }), { isHeldOff }));

  test('1: what has changed is written, and nothing that the machine came with', () => {
    const decision = at(aNodeAt(T0), unwritten);
    expect(writesOf(decision)).toEqual([`apply ${OWN_CONFIG}`]);
    expect(says(decision)).toBe('inProgress: the pool worker gets what has changed');
    const [write] = decision.writes;
    expect(write).toMatchObject({ config: own });
  });

  test('2: the operator renders it', () => {
    const stale = aWorkload({ objects: unwritten, machineConfigNode: aNodeAt(T0) });
    const decision = decideUpdate(observed(after, [before], { ...stale, objects: [...stale.objects, own] }));
    expect(decision.writes).toEqual([]);
    expect(says(decision)).toBe('inProgress: the pool worker is about to be rendered');
  });

  test('3: the node gets the target of its pool, and waits for nothing of an earlier one', () => {
    const decision = at(aNodeAt(T0));
    expect(decision.writes).toEqual([]);
    expect(says(decision)).toBe('inProgress: node node-1 is about to get the target of its pool');
  });

  test('4: the node is handed over, and MachineHealthChecks are held off it first', () => {
    const decision = at(aNodeAt(T1, T0));
    expect(writesOf(decision)).toEqual(['hold-off-remediation', `hand-over ${NODE}`]);
    expect(says(decision)).toBe('inProgress: the node stages the update');
    expect(decision.writes[1]).toMatchObject({
      update: {
        owner: { kind: 'MachineDeployment', namespace: 'default', name: 'workers' },
        machine: { namespace: 'default', name: 'workers-1' },
      },
    });
  });

  test('5: nothing is written again', () => {
    const plan = { config: T1, staged: true, actions: RESTART, causes: [], source: '' };
    const node = aNodeAt(T1, T0, {
      annotated: handedOverTo(),
      status: { plan: { ...plan, actions: [...RESTART] } },
    });
    const workload = aWorkload({ objects: written, machineConfigNode: node });
    const decision = decideUpdate(observed(after, [before], workload, { isHeldOff: true }));
    expect(decision.writes).toEqual([]);
    expect(says(decision)).toBe('inProgress: the update is staged, which needs Restart(chronyd.service)');
  });

  test('6: it runs the target, and serves again before the machine is done', () => {
    const decision = at(granted(aNodeAt(T1, T1, { annotated: handedOverTo() })), written, true);
    expect(decision.writes).toEqual([]);
    expect(says(decision)).toBe('inProgress: the node runs the update and is about to serve again');
  });

  test('7: the machine is done, and everybody gets it back', () => {
    const node = aNodeAt(T1, T1, { annotated: handedOverTo() });
    const workload = aWorkload({ objects: written, machineConfigNode: node });
    const decision = decideUpdate(observed(after, [before], workload, { isHeldOff: true }));
    expect(writesOf(decision)).toEqual([`take-back ${NODE}`, 'allow-remediation']);
    expect(says(decision)).toBe('done: updated');
  });

  test('8: asked once more, it is done', () => {
    const decision = at(aNodeAt(T1));
    expect(decision.writes).toEqual([]);
    expect(says(decision)).toBe('done: updated');
  });
});

describe('the machine, its owner and its pool', () => {
  const node = aNodeAt(T1, T0, { annotated: handedOverTo() });
  const workload = aWorkload({ objects: written, machineConfigNode: node });
  const without = (kind: string) => workload.objects.filter((object) => object.kind !== kind);
  const otherPool = aPool('infra');

  test.each<[string, Parameters<typeof observed>[3], string, readonly string[]]>([
    ['is gone', { machine: undefined }, 'failure: Machine default/workers-1 is gone', [`take-back ${NODE}`]],
    [
      'is being deleted',
      {
        machine: aMachine({
          metadata: { namespace: 'default', name: 'workers-1', deletionTimestamp: 'now' },
        }),
      },
      'failure: Machine default/workers-1 is being deleted',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'is not being updated by Cluster API',
      { machine: aMachine({ metadata: { namespace: 'default', name: 'workers-1' } }) },
      'failure: Cluster API does not update Machine default/workers-1 in place',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'is paused',
      { isPaused: true },
      'failure: Machine default/workers-1, its owner or its Cluster is paused',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'has no owner',
      { owner: undefined },
      'failure: Machine default/workers-1 belongs to no MachineDeployment and no KubeadmControlPlane',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'belongs to an owner that is gone',
      { parts: undefined },
      'failure: MachineDeployment default/workers is gone',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'belongs to an owner that no pool names',
      { owner: { kind: 'MachineDeployment', namespace: 'default', name: 'others' } },
      'failure: no MachineConfigPool names MachineDeployment default/others in spec.shale.drivenBy',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'belongs to an owner that two pools name',
      { workload: { ...workload, objects: [...workload.objects, aPool('infra', pool.spec)] } },
      'failure: the MachineConfigPools infra and worker name MachineDeployment default/workers in spec.shale.drivenBy; one of them may',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'has no node yet',
      { machine: aMachine({ status: {} }) },
      'inProgress: Machine default/workers-1 has no node yet',
      [],
    ],
    [
      'has a node that is not there',
      { workload: { ...workload, nodes: [] } },
      'inProgress: node node-1 is not there',
      [],
    ],
    [
      'has the node of another machine',
      { machine: aMachine({ spec: { clusterName: 'prod', providerID: 'dev:////other' } }) },
      'failure: node node-1 is another machine than Machine default/workers-1: their spec.providerID differ',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'has no MachineConfigNode',
      { workload: { ...workload, machineConfigNodes: [] } },
      'inProgress: node node-1 has no MachineConfigNode yet',
      [],
    ],
    [
      'is in the pool of another owner',
      {
        workload: {
          ...workload,
          objects: [
            ...workload.objects,
            aPool('infra', {
              shale: { drivenBy: { kind: 'MachineDeployment', namespace: 'default', name: 'infra' } },
            }),
          ],
          machineConfigNodes: [{ ...node, spec: { ...node.spec, pool: { name: 'infra' } } }],
        },
      },
      'failure: node node-1 is in MachineConfigPool infra, which is driven by MachineDeployment default/infra; its owner drives worker',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'is in a pool that nobody drives',
      {
        workload: {
          ...workload,
          objects: [...workload.objects, otherPool],
          machineConfigNodes: [{ ...node, spec: { ...node.spec, pool: { name: 'infra' } } }],
        },
      },
      'failure: node node-1 is in MachineConfigPool infra, which names no owner in spec.shale.drivenBy; its owner drives worker',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
    [
      'has no pool at all',
      { workload: { ...workload, objects: without('MachineConfigPool') } },
      'failure: no MachineConfigPool names MachineDeployment default/workers in spec.shale.drivenBy',
      [`take-back ${NODE}`, 'allow-remediation'],
    ],
  ])('a machine that %s', (_, more, expected, writes) => {
    const decision = decideUpdate(observed(after, [before], workload, { isHeldOff: true, ...more }));
    expect(says(decision)).toBe(expected);
    expect(writesOf(decision)).toEqual(writes);
  });

  test('a node that is being worked on is given back only then', () => {
    const busy = { ...workload, machineConfigNodes: [granted(node)] };
    const decision = decideUpdate(observed(after, [before], busy, { isHeldOff: true, isPaused: true }));
    expect(decision.writes).toEqual([]);
    expect(decision.answer.kind).toBe('failure');
  });
});

describe('what the pool is to have', () => {
  const at = (objects: readonly KubernetesObject[], more: Parameters<typeof observed>[3] = {}) =>
    decideUpdate(observed(after, [before], aWorkload({ objects, machineConfigNode: aNodeAt(T0) }), more));

  test.each<[string, readonly KubernetesObject[], Parameters<typeof observed>[3], RegExp]>([
    [
      'another MachineConfig overrides a file',
      [...unwritten, aConfig('99-admin', '/etc/chrony.conf', 'pool-admin')],
      {},
      /^failure: MachineConfig 99-admin overrides \/etc\/chrony.conf$/,
    ],
    [
      'the pool selects other MachineConfigs',
      [
        aDrivenPool({ machineConfigSelector: { matchLabels: { a: 'b' } } }),
        { ...admins, metadata: { name: 'a', labels: { a: 'b' } } },
      ],
      {},
      /^failure: the machineConfigSelector of the pool does not select MachineConfig 50-cluster-api-worker$/,
    ],
    [
      'the older template is gone',
      unwritten,
      {
        parts: { current: after, older: [{ kind: 'gone', why: 'KubeadmConfigTemplate default/a is gone' }] },
      },
      /^failure: KubeadmConfigTemplate default\/a is gone, so nobody can tell whether file .* has changed; delete/,
    ],
    [
      'somebody has written something else to the MachineConfig',
      [
        ...unwritten,
        {
          ...own,
          spec: { config: { ignition: { version: '3.4.0' }, passwd: { users: [{}] } } },
        } as MachineConfig,
      ],
      {},
      /^failure: MachineConfig 50-cluster-api-worker has something that the extension doesn't write; delete it/,
    ],
  ])('%s', (_, objects, more, expected) => {
    const decision = at(objects, more);
    expect(says(decision)).toMatch(expected);
    expect(decision.writes).toEqual([]);
  });

  test('what the MachineConfig has stays in it, as the template has it now', () => {
    const later = someParts({ files: { '/etc/chrony.conf': 'pool b', '/etc/motd': 'hi', ...BOOTSTRAP } });
    const workload = aWorkload({ objects: written, machineConfigNode: aNodeAt(T1) });
    const { writes } = decideUpdate(observed(later, [after], workload));
    expect(writes).toMatchObject([
      {
        config: {
          spec: { config: { storage: { files: [{ path: '/etc/chrony.conf' }, { path: '/etc/motd' }] } } },
        },
      },
    ]);
  });

  test('a newer template than the machine was asked for counts, and what it adds waits for its own update', () => {
    const newest = someParts({ files: { '/etc/chrony.conf': 'pool c', '/etc/motd': 'hi', ...BOOTSTRAP } });
    const parts = {
      current: newest,
      older: [before, after, newest].map((each) => ({ kind: 'known' as const, parts: each })),
    };
    const first = at(written, { parts });
    const [write] = first.writes;
    const config = write?.kind === 'apply-config' ? write.config : undefined;
    expect(config).toEqual(machineConfigOf(newest, chrony, POOL));
    const objects = [...unwritten, config as MachineConfig];
    const target = targetOf(objects);
    const workload = aWorkload({ objects, machineConfigNode: aNodeAt(target) });
    const decision = decideUpdate(observed(after, [before], workload, { parts }));
    expect(says(decision)).toBe('done: updated, to a newer template than was asked for');
  });

  test('a pool that is rolled back is left where it is', () => {
    const held = { ...pool, metadata: { ...pool.metadata, annotations: { [annotations.rollback]: '{}' } } };
    expect(says(at([held, admins, own]))).toBe(
      'failure: the pool worker is rolled back and stays there until its annotation shale.dev/rollback is removed',
    );
  });

  test.each([
    ['RenderDegraded', /^failure: the pool worker can't be rendered: no$/],
    ['BuildFailed', /^failure: the image can't be built: no$/],
    ['Building', /^inProgress: the image is being built$/],
  ])('the pool has the condition %s', (type, expected) => {
    const failed = { ...pool, status: { conditions: [condition(type, 'True', 'no')] } };
    expect(says(at([failed, admins, own]))).toMatch(expected);
  });
});

describe('a node', () => {
  const at = (status: MachineConfigNode['status'], annotated: Record<string, string> = handedOverTo()) => {
    // For a while the operator leaves a failed node its grant.
    const machineConfigNode = granted(aNodeAt(T1, T0, { annotated, status }));
    const workload = aWorkload({ objects: written, machineConfigNode });
    return decideUpdate(observed(after, [before], workload, { isHeldOff: true }));
  };
  const lastUpdate = {
    config: T1,
    actions: [],
    causes: [],
    source: '',
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: '2026-01-01T00:01:00Z',
    bootIDBefore: '',
    bootIDAfter: '',
    result: 'RolledBack' as const,
  };
  const degraded = [condition('NodeDegraded', 'True', 'chronyd is not active')];

  test('that went back to what it ran before has failed, and is everybody else’s', () => {
    const decision = at({ conditions: degraded, lastUpdate });
    expect(says(decision)).toBe(
      'failure: the update failed, and the node runs what it ran before: chronyd is not active',
    );
    expect(writesOf(decision)).toEqual([`take-back ${NODE}`, 'allow-remediation']);
  });

  test('that is asked to try again is handed over again', () => {
    const retry = JSON.stringify({ config: T1, failedAt: lastUpdate.finishedAt });
    const decision = at({ conditions: degraded, lastUpdate }, { [annotations.retry]: retry });
    expect(says(decision)).toBe('inProgress: the node is about to try the update again');
    expect(writesOf(decision)).toEqual([`hand-over ${NODE}`]);
  });

  test('that failed at an earlier target takes this one', () => {
    const decision = at({ conditions: degraded, lastUpdate: { ...lastUpdate, config: T0 } });
    expect(decision.answer.kind).toBe('inProgress');
    expect(decision.writes).toEqual([]);
  });

  test.each<[string, MachineConfigNode['status'], string]>([
    [
      'goes back',
      { conditions: [{ ...condition('RebootedNode'), status: 'Unknown', reason: 'RollingBack' }] },
      'inProgress: the update failed, and the node goes back to what it ran before',
    ],
    [
      'reboots',
      { conditions: [{ ...condition('RebootedNode'), status: 'Unknown' }] },
      'inProgress: the node reboots',
    ],
    [
      'refuses the target',
      { conditions: [{ ...condition('UpdatePrepared', 'False', 'no such user'), reason: 'PrepareRefused' }] },
      "failure: the node can't take the update: no such user",
    ],
    [
      'is being drained',
      {
        plan: { config: T1, staged: true, actions: [], causes: [], source: '' },
        drain: { blockedBy: [{ pod: 'shop/db-0', reason: 'PodDisruptionBudget db' }] },
      },
      'inProgress: the node is being drained, and waits for shop/db-0 (PodDisruptionBudget db)',
    ],
  ])('that %s', (_, status, expected) => {
    expect(says(at(status))).toBe(expected);
  });
});

describe('the version of Kubernetes', () => {
  const older = someParts({ version: 'v1.34.2' });
  const newer = someParts({ version: 'v1.35.1' });
  const at = (objects: readonly KubernetesObject[], kubeletVersion = 'v1.34.2', template = newer) => {
    const target = targetOf(objects);
    const node = { status: { nodeInfo: { kubeletVersion } } };
    const workload = aWorkload({ objects, node, machineConfigNode: aNodeAt(target) });
    return decideUpdate(observed(template, [older], workload));
  };
  const named = streams('v1.34.2', '1.35.1');
  const streamed = aDrivenPool({ osImageStream: { name: '1.35.1' } });

  test('is the stream of its name', () => {
    expect(writesOf(at([pool, admins, named]))).toEqual(['stream worker 1.35.1']);
  });

  test('is reached once the kubelet reports it', () => {
    expect(says(at([streamed, admins, named]))).toBe(
      'inProgress: node node-1 runs the update; its kubelet reports v1.34.2, and v1.35.1 is awaited',
    );
    expect(says(at([streamed, admins, named], 'v1.35.1'))).toBe('done: updated');
  });

  test('is refused without an image for it', () => {
    expect(says(at([pool, admins, streams('v1.34.2')]))).toBe(
      'failure: the ConfigMap os-image-streams of the workload cluster has no image for v1.35.1',
    );
  });

  test('is refused where a MachineConfig has an image of its own', () => {
    const fixed = {
      ...admins,
      spec: { ...admins.spec, osImageURL: image('a') },
    };
    expect(says(at([pool, fixed, named]))).toBe(
      'failure: osImageURL of MachineConfig 00-admin overrides the stream 1.35.1',
    );
  });

  test.each([
    [
      'v1.36.0',
      /a kubelet v1.36.0 is newer than the API server, which is v1.35.1; upgrade the control plane first/,
    ],
    ['v1.31.9', /more than 3 minor versions older/],
  ])('%s is refused by the skew policy', (version, why) => {
    expect(says(at([pool, admins, streams(version)], 'v1.34.2', someParts({ version })))).toMatch(why);
  });
});

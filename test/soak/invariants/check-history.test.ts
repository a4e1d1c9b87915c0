import { describe, expect, test } from 'vitest';
import type { Node } from '../../../api/kubernetes.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import {
  aBuild,
  aMachineConfigNode,
  aNode,
  aPool,
  aSuccess,
  condition,
  image,
} from '../../fixtures/objects.ts';
import type { History, HistoryEvent } from '../history/history.ts';
import { formatSummary, summarize } from '../history/summary.ts';
import { timeline } from '../history/timeline.ts';
import { checkHistory } from './check-history.ts';

const CONFIG = 'rendered-worker-1';
const GRANT = { level: 'Disrupt', config: CONFIG, leaseHolder: 'shale-operator' } as const;
const CORDONED = { metadata: { name: '', annotations: { 'shale.dev/cordoned': 'true' } } };

/** An object in a history; its versions are numbered by their places. */
type Given =
  | KubernetesObject
  | { readonly gone: KubernetesObject }
  | Exclude<HistoryEvent, { what: 'object' }>;

/** Events whose times count: where they are not given, they are those of their places. */
const TIMED = new Set(['disk', 'fault']);

function historyOf(...given: readonly Given[]): History {
  const events = given.map((each, index): HistoryEvent => {
    const at = index * 1000;
    if ('what' in each) return each.at === 0 && TIMED.has(each.what) ? { ...each, at } : each;
    const [type, object] = 'gone' in each ? (['DELETED', each.gone] as const) : (['MODIFIED', each] as const);
    const metadata = { ...object.metadata, resourceVersion: String(index + 1) };
    return { what: 'object', at, type, object: { ...object, metadata } };
  });
  return { events, secrets: ['s3cret'] };
}

function lease(node: string, holderIdentity = 'shale-operator'): KubernetesObject {
  const metadata = { name: `node-${node}`, namespace: 'medik8s-leases' };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata,
    spec: { holderIdentity },
  } as KubernetesObject;
}

const KEY = 'karpenter.sh/disrupted';
/** Tainted by others, beside what it is. */
const tainted = (node: Node) => ({
  ...node,
  spec: { ...node.spec, taints: [{ key: KEY, effect: 'NoSchedule' }] },
});
const maintenance = (nodeName: string, group = 'medik8s'): KubernetesObject =>
  ({
    apiVersion: `nodemaintenance.${group}.io/v1beta1`,
    kind: 'NodeMaintenance',
    metadata: { name: group },
    spec: { nodeName },
  }) as KubernetesObject;
const told = (name: string, status: object = {}) =>
  aMachineConfigNode(name, { heldBy: 'a NodeMaintenance is active' }, status);
const disk = (node: string, ...has: readonly string[]) =>
  ({ what: 'disk', at: 0, node, bootID: 'boot-1', has }) as const;
const during = (fault: string, phase: 'begins' | 'ends', subject: string) =>
  ({ what: 'fault', at: 0, fault, phase, subject, details: '' }) as const;
/** Time in which nothing of a node is written. */
const pass = (seconds: number) =>
  Array.from({ length: seconds }, () => ({ what: 'started', at: 0, pod: 'web', pid: 1 }) as const);

function cordoned(name: string) {
  return aNode(name, { metadata: { ...CORDONED.metadata, name }, spec: { unschedulable: true } });
}

const updated = (name: string, more: object = {}) =>
  aMachineConfigNode(
    name,
    {},
    {
      configVersion: { current: CONFIG, desired: CONFIG },
      mode: 'Standard',
      conditions: [condition('Updated')],
      ...more,
    },
  );
const settledPool = () => ({
  ...aPool('worker', { configuration: { name: CONFIG, source: [{ name: '50-worker' }] } }),
  status: { conditions: [condition('Updated')] },
});
const rendered = (text: string): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'MachineConfig',
    metadata: { name: CONFIG },
    spec: { text },
  }) as KubernetesObject;
const calm = { what: 'calm', at: 0, mode: 'Standard' } as const;
const edit = (token: string) => ({ what: 'edit', at: 0, machineConfig: '50-worker', token }) as const;
const boot = (digit: string) =>
  ({ what: 'boot', at: 0, node: 'a', bootID: `boot-${digit}`, image: image(digit) }) as const;
const runs = (digit: string, more: object = {}) =>
  aMachineConfigNode(
    'a',
    {},
    {
      bootID: `boot-${digit}`,
      configImage: { currentImage: image(digit) },
      conditions: [condition('Updated')],
      ...more,
    },
  );
const ended = {
  what: 'ended',
  at: 0,
  pod: 'operator',
  pid: 1,
  code: 1,
  signal: null,
  expected: false,
} as const;

describe('a history in which everything is as Shale promises', () => {
  test.each<[string, readonly Given[]]>([
    [
      'one node at a time',
      [
        lease('a'),
        aNode('a'),
        updated('a'),
        cordoned('a'),
        aMachineConfigNode('a', { grant: GRANT }),
        aMachineConfigNode('a'),
        aNode('a'),
        { gone: lease('a') },
      ],
    ],
    [
      'as many nodes as the pool allows',
      [
        aPool('worker', { maxUnavailable: '50%' }),
        ...['a', 'b', 'c', 'd'].map((name) => aMachineConfigNode(name)),
        cordoned('a'),
        cordoned('b'),
      ],
    ],
    [
      'a node cordoned by its admin',
      [
        aNode('a'),
        { what: 'admin cordon', at: 0, node: 'a', cordoned: true, version: 3 },
        aNode('a', { spec: { unschedulable: true } }),
        { what: 'admin cordon', at: 0, node: 'a', cordoned: false, version: 5 },
        aNode('a'),
      ],
    ],
    [
      'a Node that was deleted with the cordon of its admin, and registered again',
      [
        aNode('a'),
        { what: 'admin cordon', at: 0, node: 'a', cordoned: true, version: 3 },
        aNode('a', { spec: { unschedulable: true } }),
        { gone: aNode('a') },
        aNode('a'),
      ],
    ],
    [
      'a node that others take in the middle of its update, which leaves it cordoned to them',
      [
        lease('a'),
        aNode('a'),
        cordoned('a'),
        aMachineConfigNode('a'),
        aMachineConfigNode('a', { grant: GRANT }),
        tainted(cordoned('a')),
        ...pass(20),
        aMachineConfigNode('a'),
        cordoned('a'),
        aNode('a'),
      ],
    ],
    [
      'a node that is taken at the same moment by others',
      [
        lease('a'),
        aMachineConfigNode('a'),
        tainted(aNode('a')),
        ...pass(3),
        aMachineConfigNode('a', { grant: GRANT }),
      ],
    ],
    [
      'an operator that was paused when others came',
      [
        lease('a'),
        aMachineConfigNode('a'),
        tainted(aNode('a')),
        during('pause', 'begins', 'shale-operator'),
        ...pass(20),
        during('pause', 'ends', 'shale-operator'),
        aMachineConfigNode('a', { grant: GRANT }),
      ],
    ],
    [
      'a NodeMaintenance that the Node does not show',
      [
        lease('a'),
        aNode('a'),
        aMachineConfigNode('a'),
        maintenance('a', 'kubevirt'),
        ...pass(20),
        aMachineConfigNode('a', { grant: GRANT }),
      ],
    ],
    [
      'the disk of a node that boots, or that has just been taken',
      [
        disk('a', 'one'),
        told('a'),
        ...pass(3),
        disk('a', 'two'),
        ...pass(20),
        { ...disk('a', 'three'), bootID: 'boot-2' },
      ],
    ],
    ['bytes as the config says', [{ what: 'bytes', at: 0, node: 'a', config: CONFIG, differences: [] }]],
    [
      'a boot of what was granted',
      [boot('1'), aMachineConfigNode('a', { grant: { ...GRANT, image: image('2') } }), boot('2'), runs('2')],
    ],
    [
      'a boot without a grant that says so',
      [boot('1'), boot('2'), runs('2', { lastUpdate: { withoutGrant: true } })],
    ],
    [
      'nothing left to do',
      [settledPool(), rendered('second'), aNode('a'), updated('a'), edit('first'), edit('second'), calm],
    ],
    [
      'a node that leaves',
      [settledPool(), aNode('a'), updated('a'), { gone: updated('a') }, { gone: aNode('a') }, calm],
    ],
    [
      'a process that was killed',
      [
        { ...ended, code: null, signal: 'SIGKILL', expected: true },
        { ...ended, code: 0 },
      ],
    ],
    ['a secret in a Secret', [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's3cret' } }]],
  ])('%s', (_, given) => {
    expect(checkHistory(historyOf(...given))).toEqual([]);
  });
});

describe('a history in which Shale breaks', () => {
  test.each<[string, readonly Given[], string]>([
    [
      'maxUnavailable by a cordon',
      [
        lease('a'),
        lease('b'),
        updated('a'),
        updated('b'),
        aNode('a'),
        aNode('b'),
        cordoned('a'),
        cordoned('b'),
      ],
      'a, b are disrupted at once, 2 of at most 1',
    ],
    [
      'maxUnavailable by a grant',
      [
        lease('a'),
        lease('b'),
        updated('a'),
        updated('b'),
        aMachineConfigNode('a', { grant: GRANT }),
        aMachineConfigNode('b', { grant: GRANT }),
      ],
      'a, b are disrupted at once',
    ],
    [
      'a lease by a cordon',
      [aNode('a'), cordoned('a')],
      'was cordoned by Shale, and its Lease is held by nobody',
    ],
    [
      'a lease of another by a grant',
      [lease('a', 'nhc'), updated('a'), aMachineConfigNode('a', { grant: GRANT })],
      'granted Disrupt for rendered-worker-1, and its Lease is held by nhc',
    ],
    [
      'a lease by lifting a cordon',
      [lease('a'), aNode('a'), cordoned('a'), { gone: lease('a') }, aNode('a')],
      'was uncordoned, and its Lease is held by nobody',
    ],
    [
      'an admin’s cordon',
      [
        { what: 'admin cordon', at: 0, node: 'a', cordoned: true, version: 2 },
        aNode('a', { spec: { unschedulable: true } }),
        aNode('a'),
      ],
      'a is schedulable, and an admin had cordoned it',
    ],
    [
      'a node of others by a grant',
      [
        lease('a'),
        aMachineConfigNode('a'),
        tainted(aNode('a')),
        ...pass(6),
        aMachineConfigNode('a', { grant: GRANT }),
      ],
      'node a was granted Disrupt, and others hold it: taint for 7000 ms',
    ],
    [
      'a node of others by a cordon',
      [aNode('a'), maintenance('a'), lease('a'), ...pass(10), cordoned('a')],
      'node a was cordoned by Shale, and others hold it: maintenance',
    ],
    [
      'a node of others by lifting a cordon that they rely on',
      [lease('a'), cordoned('a'), tainted(cordoned('a')), ...pass(6), tainted(aNode('a'))],
      'node a was uncordoned, and others hold it: taint',
    ],
    [
      'a node of others by a target',
      [
        aNode('a'),
        aMachineConfigNode('a'),
        lease('a', 'somebody-else'),
        ...pass(6),
        aMachineConfigNode('a', { configVersion: { desired: 'rendered-worker-2' } }),
      ],
      'node a was given something to write',
    ],
    [
      'the disk of a node of others',
      [told('a'), ...pass(11), disk('a', 'one'), disk('a', 'two')],
      'node a was written to (-one, +two), 13000 ms after it was told: a NodeMaintenance is active',
    ],
    [
      'the disk of a node of others by staging',
      [
        told('a'),
        ...pass(11),
        told('a', { plan: { config: CONFIG, staged: true, actions: [], causes: [], source: '' } }),
      ],
      `node a staged ${CONFIG}`,
    ],
    [
      'a node at the end, which is still told of others',
      [settledPool(), aNode('a'), { ...updated('a'), spec: told('a').spec }, calm],
      'is still told that it is held',
    ],
    [
      'a node at the end, which neighbours may not delete',
      [aNode('a', { metadata: { name: 'a', annotations: { 'karpenter.sh/do-not-disrupt': 'true' } } }), calm],
      'node a is still cordoned, or kept from others',
    ],
    [
      'a fault that the campaign could not bring about',
      [{ what: 'fault', at: 0, fault: 'reboot', phase: 'fails', subject: 'a', details: 'begins: not found' }],
      'fault reboot of a: begins: not found',
    ],
    [
      'the bytes of a node',
      [{ what: 'bytes', at: 0, node: 'a', config: CONFIG, differences: ['/etc/motd: other content'] }],
      '/etc/motd: other content',
    ],
    [
      'the images of a pool',
      [
        aBuild('b', CONFIG, { status: aSuccess('1') }),
        aMachineConfigNode('a', {
          pool: { name: 'infra' },
          configImage: { desiredImage: image('1') },
        }),
      ],
      'of pool worker',
    ],
    [
      'the images of a config',
      [
        aBuild('b', 'rendered-worker-0', { status: aSuccess('1') }),
        aMachineConfigNode('a', { configImage: { desiredImage: image('1') } }),
      ],
      'and rendered-worker-0',
    ],
    [
      'what builds have pushed',
      [aMachineConfigNode('a', { configImage: { desiredImage: image('1') } })],
      'which no build has pushed',
    ],
    [
      'what a node may stage',
      [
        aMachineConfigNode(
          'a',
          {},
          {
            plan: {
              config: CONFIG,
              image: image('1'),
              staged: true,
              actions: [],
              causes: [],
              source: '',
            },
          },
        ),
      ],
      'which it was never assigned',
    ],
    ['what may boot', [boot('1'), boot('2'), runs('2')], 'without a grant, and counts as updated'],
    [
      'the last edit',
      [settledPool(), rendered('first'), updated('a'), edit('second'), edit('first'), edit('second'), calm],
      'lacks the last edit second',
    ],
    ['a build', [aBuild('b', CONFIG), calm], 'build b has not ended'],
    [
      'a node for ever',
      [settledPool(), aMachineConfigNode('a', { grant: GRANT }), calm],
      'still has a grant',
    ],
    [
      'the switch',
      [settledPool(), updated('a', { mode: 'Layered' }), calm],
      'is in mode Layered, not Standard',
    ],
    [
      'a node that has left',
      [settledPool(), aNode('a'), updated('a'), { gone: aNode('a') }, calm],
      'MachineConfigNode a is left of a node that is gone',
    ],
    ['a lease at the end', [lease('a'), calm], 'lease node-a is still there'],
    ['a cordon at the end', [cordoned('a'), calm], 'still cordoned'],
    ['a process', [ended], 'ended with exit code 1'],
    ['a process by a signal', [{ ...ended, code: null, signal: 'SIGSEGV' }], 'ended with signal SIGSEGV'],
    [
      'a process, and prints why',
      [{ what: 'raw line', at: 0, pod: 'operator', line: '    at lead (file:///main.mjs:10:3)' }],
      'printed',
    ],
    [
      'a secret in an object',
      [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', annotations: { x: 's3cret' } } }],
      'ConfigMap c',
    ],
    [
      'a secret in base64',
      [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', annotations: { x: btoa('s3cret') } } }],
      'ConfigMap c',
    ],
    [
      'a secret in a log',
      [{ what: 'secret found', at: 0, where: 'the log of the operator' }],
      'the log of the operator',
    ],
    [
      'the registry',
      [{ what: 'leaked images', at: 0, images: ['os/worker@sha256:1'] }],
      'os/worker@sha256:1',
    ],
  ])('%s', (_, given, message) => {
    const found = checkHistory(historyOf(...given));
    expect(found.map((violation) => violation.message).join('\n')).toContain(message);
  });

  test('the order of writes decides, not the order in which watches showed them', () => {
    const { events, secrets } = historyOf(lease('a'), aNode('a'), cordoned('a'), aNode('a'), {
      gone: lease('a'),
    });
    const [held, ...rest] = events;
    expect(checkHistory({ events: held === undefined ? [] : [...rest, held], secrets })).toEqual([]);
  });
});

test('a history can be read and summed up', () => {
  const lastUpdate = {
    config: CONFIG,
    actions: [{ type: 'Reboot' }],
    result: 'Succeeded',
    finishedAt: '2026-01-01T00:00:00Z',
  };
  const history = historyOf(
    { what: 'fault', at: 0, fault: 'kill', phase: 'begins', subject: 'operator', details: '' },
    edit('first'),
    aMachineConfigNode('a'),
    updated('a', { lastUpdate }),
    tainted(aNode('a')),
    { what: 'bytes', at: 60_000, node: 'a', config: CONFIG, differences: [] },
  );
  expect(timeline(history)).toEqual([
    '     0.00s >>> kill operator',
    '     0.00s --- edit first of MachineConfig 50-worker',
    `     2.00s MachineConfigNode a: pool worker, desired ${CONFIG}, no grant, runs nothing`,
    `     3.00s MachineConfigNode a: runs ${CONFIG}, last update ${CONFIG} Succeeded 2026-01-01T00:00:00Z, Updated=True`,
    '     4.00s Node a: schedulable, taint karpenter.sh/disrupted, Ready=True',
  ]);
  expect(formatSummary(summarize(history, []))).toEqual([
    '1.0 minutes, 3 versions of objects, 1 edit, 0 boots',
    '1 node update: Succeeded with a reboot 1',
    '1 fault: kill 1',
    'nodes were taken 1 time by others: taint 1',
    '1 comparison of bytes',
    '0 violations',
  ]);
});

import { describe, expect, it } from 'vitest';
import { aPool, aState, condition, type StateFields } from '../../test/fixtures/objects.ts';
import {
  AWAITING,
  type Case,
  failed,
  inputs,
  off,
  staged,
  text,
} from '../../test/fixtures/pool-status-inputs.ts';
import { degradedVerdict, nodeDegradedVerdict } from './pool-conditions.ts';

describe('NodeDegraded', () => {
  it('quotes the nodes that failed, and none that is away or well', () => {
    expect(text(nodeDegradedVerdict([aState('a'), staged('b')]))).toBe('False NoNodeDegraded');
    const {
      claims: { away },
    } = off('x');
    expect(text(nodeDegradedVerdict([failed('b'), failed('a'), failed('c', { away })]))).toBe(
      'True NodesDegraded Node a is reporting: "no space", Node b is reporting: "no space"',
    );
    const why = 'etcd is away\n2 of 3 are healthy';
    expect(text(nodeDegradedVerdict([failed('a', { progress: { kind: 'degraded', why, since: 0 } })]))).toBe(
      'True NodesDegraded Node a is reporting: "etcd is away; 2 of 3 are healthy"',
    );
  });
});

describe('Degraded', () => {
  const verdict = (given: Case) => text(degradedVerdict(inputs(given)));
  const refusing = (name: string, why: string, more: StateFields = {}) =>
    aState(name, { progress: { kind: 'preparing', why, stalled: 'refused' }, ...more });

  it.each<[string, Case, string]>([
    ['nothing', { states: [staged('a')] }, 'False AsExpected'],
    ['nodes that failed', { states: [failed('a')] }, 'True NodesDegraded Node a is reporting: "no space"'],
    [
      'a rendering that failed',
      {
        pool: {
          ...aPool('worker'),
          status: { conditions: [condition('RenderDegraded', 'True', 'broken config')] },
        },
      },
      'True Degraded broken config',
    ],
    [
      'a rendering that is well again',
      { pool: { ...aPool('worker'), status: { conditions: [condition('RenderDegraded', 'False', 'x')] } } },
      'False AsExpected',
    ],
    [
      'a daemon to which the API server refuses something',
      { states: [aState('a', { daemonFails: 'looking after the node fails: get Secret pull-secret: no' })] },
      'True Degraded Node a: looking after the node fails: get Secret pull-secret: no',
    ],
    ['a build that runs', { target: AWAITING }, 'False AsExpected'],
    [
      'a build that failed',
      { target: { ...AWAITING, state: 'BuildFailed', why: 'it failed' } },
      'True Degraded it failed',
    ],
    [
      'a rollout that has stopped',
      { decision: { halted: 'it has stopped' } },
      'True Degraded it has stopped',
    ],
    [
      'settings that can’t be read',
      { settings: { problems: ['x is wrong', 'y is wrong'], closed: 'x' } },
      'True Degraded x is wrong; y is wrong',
    ],
    [
      'a rollback that is refused',
      { settings: { closed: 'unknown config' } },
      'True Degraded unknown config',
    ],
    [
      'drains that take too long, by name',
      {
        stuckDrains: new Map([
          ['b', 'is being drained'],
          ['a', 'is being drained'],
        ]),
      },
      'True Degraded Node a is being drained; Node b is being drained',
    ],
    [
      'hooks that take too long, with drains',
      {
        overdueHooks: new Map([['a', 'has been waiting for 1 hook']]),
        stuckDrains: new Map([['b', 'is being drained']]),
      },
      'True Degraded Node a has been waiting for 1 hook; Node b is being drained',
    ],
    [
      'a node that another custom pool selects, too',
      { disputes: [{ node: 'a', pools: ['infra', 'storage'] }] },
      'True NodesInSeveralPools Node a is in no pool, because custom pools infra and storage both select it; change its labels, or the nodeSelector of a pool, so that only one of them does',
    ],
    [
      'such nodes beside others that failed, and after what needs somebody at once',
      {
        states: [failed('c')],
        disputes: [
          { node: 'b', pools: ['gpu', 'infra', 'storage'] },
          { node: 'a', pools: ['gpu', 'infra', 'storage'] },
        ],
        settings: { problems: ['x is wrong'] },
      },
      'True Degraded x is wrong; Nodes a and b are in no pool, because custom pools gpu, infra and storage all select them; change their labels, or the nodeSelector of a pool, so that only one of them does',
    ],
    [
      'nodes that refuse the target, each reason once',
      {
        states: [
          refusing('b', 'usbguard'),
          refusing('c', 'kernel'),
          refusing('a', 'usbguard'),
          refusing('away', 'usbguard', { away: { kind: 'switched-off', why: '' } }),
          aState('slow', { progress: { kind: 'preparing', why: 'usbguard' } }),
        ],
      },
      'True Degraded refused by a, b: usbguard; refused by c: kernel',
    ],
    [
      'several causes, before what single nodes report',
      {
        states: [failed('a')],
        decision: { halted: 'it has stopped' },
        settings: { problems: ['x is wrong'] },
      },
      'True Degraded it has stopped; x is wrong',
    ],
  ])('by %s', (_what, given, expected) => {
    expect(verdict(given)).toBe(expected);
  });
});

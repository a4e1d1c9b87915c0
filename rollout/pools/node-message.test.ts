import { expect, test } from 'vitest';
import { aState, condition, type StateFields } from '../../test/fixtures/objects.ts';
import { nodeMessage } from './node-message.ts';
import type { NodeStep } from './node-step.ts';

const preparing: StateFields = { progress: { kind: 'preparing', why: 'stages the target' } };
const away: StateFields = { away: { kind: 'switched-off', why: 'it was switched off' } };
const verifying: StateFields = {
  progress: { kind: 'staged', actions: [] },
  stage: { kind: 'verifying', condition: condition('UpdatePostActionComplete', 'True', 'etcd is away') },
};
const hooks = (phase: 'before' | 'after', ...pending: string[]): StateFields => ({
  work: { cordon: { uncordon: true }, grant: undefined, hooks: { phase, since: 0, pending } },
});
const drain: NodeStep = { kind: 'drain' };
const finish: NodeStep = { kind: 'finish' };

test.each<[string, StateFields, NodeStep | undefined, string | RegExp | undefined]>([
  ['nothing is under way', {}, undefined, undefined],
  ['the target is prepared', preparing, undefined, 'stages the target'],
  ['it is away', away, undefined, 'not waited for: it was switched off'],
  ['it is away and prepares', { ...preparing, ...away }, undefined, 'not waited for: it was switched off'],
  ['it is drained', {}, drain, 'is being drained'],
  ['it is drained, and prepares', preparing, drain, 'is being drained'],
  ['its step says why', preparing, { kind: 'keep-lease', why: 'reboots' }, 'reboots'],
  ['it is backed out', away, { kind: 'back-out', why: 'it was switched off' }, 'it was switched off'],
  ['it is let go', {}, { kind: 'let-go', why: 'failed' }, 'failed'],
  ['it is suspended', {}, { kind: 'suspend', why: 'lost its lease' }, 'lost its lease'],
  [
    'it runs the target and is verified',
    verifying,
    { kind: 'keep-lease', why: 'the daemon applies the update' },
    'verifying: etcd is away',
  ],
  [
    'it is away while it is verified',
    { ...verifying, ...away },
    undefined,
    'not waited for: it was switched off',
  ],
  ['it begins', preparing, { kind: 'take', level: 'Live' }, 'stages the target'],
  ['it is finished', {}, finish, undefined],
  ['hooks hold its drain', hooks('before', 'lb'), drain, /lb/],
  ['hooks hold its end', hooks('after', 'gpu'), finish, /gpu/],
  ['all hooks are cleared', hooks('before'), drain, 'is being drained'],
  ['hooks of the other phase are pending before the drain', hooks('after', 'gpu'), drain, 'is being drained'],
  ['hooks of the other phase are pending at its end', hooks('before', 'lb'), finish, undefined],
  [
    'hooks are pending, and another step is next',
    hooks('before', 'lb'),
    { kind: 'keep-lease', why: 'reboots' },
    'reboots',
  ],
])('what is reported of a node where %s', (_what, more, step, expected) => {
  const remark = nodeMessage(aState('a', more), step);
  if (expected instanceof RegExp) expect(remark).toMatch(expected);
  else expect(remark).toBe(expected);
});

import { expect, test } from 'vitest';
import { AT_NEXT_REBOOT, type NodeConditionType, PREPARE_REFUSED } from '../api/machine-config-node.ts';
import type { Condition } from '../api/object.ts';
import { nodeReadiness } from './node-readiness.ts';

function set(type: NodeConditionType, status: Condition['status'], reason: string = type): Condition {
  return { type, status, reason, message: `${reason}: why`, lastTransitionTime: '2026-06-01T00:00:00Z' };
}

const updated = set('Updated', 'True');
const outdated = set('Updated', 'False');
const degraded = set('NodeDegraded', 'True', 'UpdateFailed');
const refused = set('UpdatePrepared', 'False', PREPARE_REFUSED);
const preparing = set('UpdatePrepared', 'False', 'Preparing');
const failed = set('UpdatePrepared', 'False', 'PrepareFailed');
const prepared = set('UpdatePrepared', 'True', 'Prepared');
const executing = set('UpdateExecuted', 'Unknown', 'Applying');
const rebooting = set('RebootedNode', 'Unknown', 'Rebooting');
const failing = set('StepsFailing', 'True', 'Refused');
const verifying = set('UpdatePostActionComplete', 'Unknown', 'Verifying');

test.each<[string, readonly Condition[], string, string | undefined]>([
  ['has reported nothing', [], 'reconciling', 'Unknown'],
  ['runs its target', [updated], 'ready', undefined],
  ['runs its target since an update', [prepared, set('UpdateExecuted', 'True'), updated], 'ready', undefined],
  ['is not at its target, and does nothing yet', [outdated], 'reconciling', 'Unknown'],
  ['stages its target', [preparing, outdated], 'reconciling', 'Preparing'],
  ['could not stage it, and tries again', [failed, outdated], 'reconciling', 'PrepareFailed'],
  ['has staged it', [prepared, outdated], 'reconciling', 'AwaitingGrant'],
  ['boots it next', [set('UpdatePrepared', 'True', AT_NEXT_REBOOT), outdated], 'reconciling', AT_NEXT_REBOOT],
  ['applies it', [prepared, executing, outdated], 'reconciling', 'Applying'],
  ['reboots', [prepared, set('UpdateExecuted', 'True'), rebooting], 'reconciling', 'Rebooting'],
  ['verifies what it booted', [executing, rebooting, verifying], 'reconciling', 'Verifying'],
  ['can’t be worked on by the operator', [prepared, outdated, failing], 'stalled', 'Refused'],
  ['runs its target, and can’t be worked on', [updated, failing], 'stalled', 'Refused'],
  ['acts, while the operator can’t', [executing, outdated, failing], 'reconciling', 'Applying'],
  ['refuses its target', [refused, outdated], 'stalled', PREPARE_REFUSED],
  ['refuses its target and failed before', [degraded, refused], 'stalled', PREPARE_REFUSED],
  ['refuses another target, whatever it runs', [refused, updated], 'stalled', PREPARE_REFUSED],
  ['failed', [prepared, degraded, outdated], 'stalled', 'UpdateFailed'],
  ['failed without a word about its target', [degraded], 'stalled', 'UpdateFailed'],
  ['failed, and stages another target', [preparing, degraded], 'reconciling', 'Preparing'],
  ['failed, and tries to stage another again', [failed, degraded], 'reconciling', 'PrepareFailed'],
  ['failed, and applies another target', [prepared, executing, degraded], 'reconciling', 'Applying'],
  ['failed before, and runs its target', [set('NodeDegraded', 'False'), updated], 'ready', undefined],
])('a node that %s', (_what, conditions, kind, reason) => {
  const readiness = nodeReadiness(conditions);
  expect(readiness.kind).toBe(kind);
  expect('reason' in readiness ? readiness.reason : undefined).toBe(reason);
  const of = conditions.find((each) => each.reason === (reason === 'AwaitingGrant' ? 'Prepared' : reason));
  if (of !== undefined) expect(readiness.message).toBe(of.message);
});

test('what a node reports is the message; before the first report, that there is none', () => {
  expect(nodeReadiness([updated])).toEqual({ kind: 'ready', message: 'Updated: why' });
  expect(nodeReadiness([]).message).toBe('The daemon has not reported yet');
});

import { expect, test } from 'vitest';
import {
  parseDeadline,
  parsePowerOff,
  parseReboot,
  parseRepair,
  parseRetry,
  parseRollback,
} from '../../api/annotation-requests.ts';
import { annotations } from '../../api/names.ts';
import { parseTransitionLabel } from '../../disruption/transitions.ts';
import { recordedLimits } from '../../machineconfig/rendered-annotations.ts';
import { withLaterFields } from '../fixtures/later-fields.ts';

/** What versions of Shale leave one another in annotations of objects and labels of images. */

const DIGEST = `sha256:${'a'.repeat(64)}`;
const TIME = '2026-01-01T00:00:00Z';
const actions = [{ type: 'Restart', service: 'chronyd.service' }];
const cause = { subject: '/etc/a', kind: 'file', change: 'changed', rule: 'policy for /etc/a', actions };
const transitions = [{ config: 'rendered-1', base: `os@${DIGEST}`, actions, causes: [cause] }];
const config = (text: string) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-1', annotations: { [annotations.limits]: text } },
  spec: {},
});

test.each<[what: string, record: object, read: (text: string) => unknown]>([
  ['a request to repair a node', { id: '1', by: 'ann', at: TIME }, parseRepair],
  ['a request to retry an update', { config: 'rendered-1', failedAt: TIME, by: 'ann', at: TIME }, parseRetry],
  ['a request to reboot a node', { bootID: '1', by: 'ann', reason: 'disk', at: TIME }, parseReboot],
  [
    'a request to power a machine off',
    { bootID: '1', by: 'ann', reason: 'disk', at: TIME, leaseHolder: 'ann' },
    parsePowerOff,
  ],
  [
    'a request to roll a pool back',
    { config: 'rendered-1', by: 'ann', reason: '', at: TIME, from: { config: 'rendered-2', layered: true } },
    parseRollback,
  ],
  ['a deadline for a change', { id: '1', until: TIME, by: 'ann', reason: 'slow', at: TIME }, parseDeadline],
  ['the transitions of an image', { version: 1, policyDigest: DIGEST, transitions }, parseTransitionLabel],
  [
    'the limits of a rendered config',
    { fileBytes: 1, configBytes: 2 },
    (text) => recordedLimits(config(text)),
  ],
])('%s is read as it is, whatever a later version has added', (_what, record, read) => {
  const known = read(JSON.stringify(record));
  expect(known).toMatchObject('transitions' in record ? { ok: true, label: record } : record);
  expect(read(JSON.stringify(withLaterFields(record)))).toEqual(known);
});

test('an image whose transitions a later version wrote in another way takes a reboot', () => {
  const text = JSON.stringify({ version: 2, policyDigest: DIGEST, transitions });
  expect(parseTransitionLabel(text)).toMatchObject({ ok: false });
});

import { expect, it } from 'vitest';
import type { RollbackDeadline } from '../../api/annotation-requests.ts';
import type { RecordedDeadline } from '../../api/machine-config-pool.ts';
import type { NodeTarget } from './node-target.ts';
import { type DeadlineState, decideDeadline, unconfirmedRequest } from './rollback-deadline.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const MINUTE = 60_000;
const DAY = 86_400_000;
const ran = { config: 'rendered-worker-1', image: `os@sha256:${'1'.repeat(64)}` };
const recorded = { id: 'a', ...ran };

function deadline(inMs: number, more: Partial<RollbackDeadline> = {}): RollbackDeadline {
  return { id: 'a', until: new Date(NOW + inMs).toISOString(), by: '', reason: '', at: '', ...more };
}

function decide(
  request: Parameters<typeof decideDeadline>[0],
  known?: RecordedDeadline,
  running: NodeTarget | string = ran,
): DeadlineState {
  return decideDeadline(request, known, () => running, NOW);
}

it.each<[string, DeadlineState, object]>([
  ['none', decide(undefined), { kind: 'none' }],
  ['none any more', decide(undefined, recorded), { kind: 'none' }],
  ['seen for the first time', decide(deadline(MINUTE)), { kind: 'waits', recorded, until: NOW + MINUTE }],
  [
    'of standard mode',
    decide(deadline(MINUTE), undefined, { config: 'c' }),
    { kind: 'waits', recorded: { id: 'a', config: 'c' } },
  ],
  [
    'whose record goes before what nodes run now',
    decide(deadline(MINUTE), recorded, { config: 'tried' }),
    { kind: 'waits', recorded },
  ],
  [
    'put off',
    decide(deadline(7 * DAY), recorded, { config: 'tried' }),
    { kind: 'waits', recorded, until: NOW + 7 * DAY },
  ],
  [
    'another one than what is recorded',
    decide(deadline(MINUTE, { id: 'b' }), recorded, { config: 'confirmed' }),
    { kind: 'waits', recorded: { id: 'b', config: 'confirmed' } },
  ],
  ['that is now', decide(deadline(0), recorded), { kind: 'passed', recorded }],
  ['that passed while no operator ran', decide(deadline(-DAY), recorded), { kind: 'passed', recorded }],
  [
    'that passed before an operator saw it',
    decide(deadline(-1)),
    {
      kind: 'refused',
      recorded: { id: 'a', refused: expect.stringContaining('had passed before the operator saw it') },
    },
  ],
  [
    'that passed before an operator saw it, after another one',
    decide(deadline(-1, { id: 'b' }), recorded),
    { kind: 'refused', recorded: { id: 'b', refused: expect.any(String) } },
  ],
  [
    'by the clock of another machine, an hour ahead',
    decide(deadline(7 * DAY + 60 * MINUTE)),
    { kind: 'waits' },
  ],
  [
    'that is far away',
    decide(deadline(8 * DAY)),
    { kind: 'refused', recorded: { id: 'a' }, why: expect.stringContaining('more than 7 days away') },
  ],
  [
    'put off to a time that is far away, which keeps its record',
    decide(deadline(900 * DAY), recorded),
    { kind: 'refused', recorded: { ...recorded, refused: expect.any(String) } },
  ],
  [
    'for a pool of which it is not known what it runs',
    decide(deadline(MINUTE), undefined, 'nothing is known'),
    { kind: 'refused', recorded: { id: 'a', refused: 'nothing is known' }, why: 'nothing is known' },
  ],
  [
    'that was refused before',
    decide(deadline(MINUTE), { id: 'a', refused: 'nothing was known' }),
    { kind: 'waits', recorded },
  ],
  ['that can not be read keeps its record', decide('unreadable', recorded), { kind: 'unreadable', recorded }],
])('a deadline %s', (_what, state, expected) => expect(state).toMatchObject(expected));

it('names the revision of the record alone, whatever the annotation has beside', () => {
  const asked = { ...deadline(-1), config: 'chosen', image: 'chosen@sha256:0', from: {} };
  const state = decide(asked, recorded);
  expect(state.kind === 'passed' && unconfirmedRequest(state, NOW)).toEqual({
    ...ran,
    by: 'shale',
    at: new Date(NOW).toISOString(),
    reason: `the change was not confirmed until ${asked.until}`,
    unconfirmed: 'a',
  });
});

it('says whose change was not confirmed, and why it was tried', () => {
  const state = decide(deadline(0, { by: 'alice', reason: 'NTP' }), recorded);
  expect(state.kind === 'passed' && unconfirmedRequest(state, NOW).reason).toBe(
    'the change of alice was not confirmed until 2026-06-01T00:00:00.000Z: NTP',
  );
});

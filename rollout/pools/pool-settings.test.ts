import { expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { aPool, image } from '../../test/fixtures/objects.ts';
import { poolSettings } from './pool-settings.ts';

const options = { soakSeconds: 30, failureThreshold: { unproven: 1, proven: 3 }, unhealthyAfterSeconds: 900 };
const settings = (requests: Readonly<Record<string, string>>, shale: SettingFields = {}) => {
  const pool = aPool('worker', { shale });
  return poolSettings({ ...pool, metadata: { ...pool.metadata, annotations: requests } }, options);
};

it('a pool that sets nothing has the operator’s settings', () => {
  expect(settings({})).toMatchObject({
    soak: 30_000,
    failureThreshold: { unproven: 1, proven: 3 },
    unhealthyAfter: 900_000,
    hooks: { before: [], after: [] },
    rollback: undefined,
    deadline: undefined,
    closed: undefined,
    problems: [],
    warnings: [],
  });
});

it('its own settings outrank the operator’s', () => {
  const shale = { soak: '1m', unhealthyAfter: '1h', hooksBefore: ['lb'], hooksAfter: ['gpu'] };
  expect(settings({}, shale)).toMatchObject({
    soak: 60_000,
    unhealthyAfter: 3_600_000,
    hooks: { before: ['lb'], after: ['gpu'] },
  });
});

it('one that can not be read has the operator’s where nothing else is safe', () => {
  expect(settings({}, { unhealthyAfter: 'long' })).toMatchObject({ unhealthyAfter: 900_000 });
});

it('a request of a rollback is read', () => {
  const rollback = { config: 'rendered-worker-1', image: image('1'), by: 'ada', reason: 'slow', at: 'now' };
  expect(settings({ [annotations.rollback]: JSON.stringify(rollback) })).toMatchObject({
    rollback,
    closed: undefined,
    problems: [],
  });
});

it.each([
  [annotations.rollback, '{"config": "x", "image": "os:latest"}', { rollback: undefined }, /starts: image: /],
  [
    annotations.rollbackDeadline,
    '{"id": "a", "until": "soon"}',
    { deadline: 'unreadable' },
    /no update starts: until: /,
  ],
  [
    annotations.rollbackDeadline,
    '2026-06-01T00:00:00Z',
    { deadline: 'unreadable' },
    /no update starts: Unexpected/,
  ],
])('%s: %s can not be read, so no update starts', (name, text, expected, problem) => {
  const found = settings({ [name]: text });
  expect(found).toMatchObject({ ...expected, closed: `annotation ${name} can't be read` });
  expect(found.problems).toEqual([expect.stringMatching(problem)]);
  expect(found.problems[0]).not.toContain('\n');
});

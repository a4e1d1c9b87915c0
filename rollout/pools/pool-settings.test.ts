import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aPool, image } from '../../test/fixtures/objects.ts';
import { ONLY_CANARY } from '../gates/waves.ts';
import { poolSettings } from './pool-settings.ts';

const options = { soakSeconds: 30, failureThreshold: { unproven: 1, proven: 2 }, unhealthyAfterSeconds: 600 };
const settings = (set: Partial<Record<keyof typeof annotations, string>>) => {
  const pool = aPool('worker');
  const texts = Object.entries(set).map(([key, text]) => [
    annotations[key as keyof typeof annotations],
    text,
  ]);
  return poolSettings({ metadata: { ...pool.metadata, annotations: Object.fromEntries(texts) } }, options);
};

it('a pool without annotations has the operator’s settings', () => {
  expect(settings({})).toEqual({
    windows: undefined,
    liveOutsideWindows: false,
    updateCordoned: false,
    dependsOn: [],
    waves: [],
    alerts: { kind: 'none' },
    queries: { kind: 'none' },
    soak: 30_000,
    failureThreshold: { unproven: 1, proven: 2 },
    unhealthyAfter: 600_000,
    autoRollback: false,
    reboots: 'Automatic',
    maxArmed: undefined,
    softReboot: false,
    prefetch: false,
    hooks: { before: [], after: [] },
    rollback: undefined,
    closed: undefined,
    problems: [],
  });
});

it('annotations are what they say', () => {
  const rollback = { config: 'rendered-worker-1', image: image('1'), by: 'ada', reason: 'slow', at: 'now' };
  expect(
    settings({
      maintenanceWindows: '[]',
      liveOutsideWindows: 'true',
      updateCordoned: 'true',
      dependsOn: 'canary, infra canary',
      holdOnAlerts: 'severity="critical"',
      holdOnQueries: 'up == 0\nabsent(up)',
      waves: '[{"nodes": 1, "bake": "30m"}, {"nodes": "25%", "bake": "2h"}]',
      soakSeconds: '0',
      failureThreshold: '{"canary": 2, "after": 5}',
      unhealthyAfterSeconds: '1800',
      autoRollback: 'true',
      rebootPolicy: 'AtNextReboot',
      maxArmed: '20%',
      softReboot: 'true',
      prefetch: 'true',
      hooksBefore: 'storage.example.com_noout, lb',
      hooksAfter: 'gpu-test',
      rollback: JSON.stringify(rollback),
    }),
  ).toEqual({
    windows: [],
    liveOutsideWindows: true,
    updateCordoned: true,
    dependsOn: ['canary', 'infra'],
    waves: [
      { nodes: { kind: 'count', value: 1 }, bake: 1_800_000 },
      { nodes: { kind: 'percent', value: 25 }, bake: 7_200_000 },
    ],
    alerts: { kind: 'named', questions: [['severity="critical"']] },
    queries: { kind: 'named', questions: ['up == 0', 'absent(up)'] },
    soak: 0,
    failureThreshold: { unproven: 2, proven: 5 },
    unhealthyAfter: 1_800_000,
    autoRollback: true,
    reboots: 'AtNextReboot',
    maxArmed: '20%',
    softReboot: true,
    prefetch: true,
    hooks: { before: ['storage.example.com_noout', 'lb'], after: ['gpu-test'] },
    rollback,
    closed: undefined,
    problems: [],
  });
});

describe('a value that can’t be parsed is treated with caution and reported', () => {
  it.each<[keyof typeof annotations, string, object, RegExp]>([
    ['maintenanceWindows', '{', { windows: [] }, /maintenance-windows can't be read, so no window opens: /],
    ['updateCordoned', 'yes', { updateCordoned: false }, /that others cordoned are left alone: .*not "yes"/],
    ['liveOutsideWindows', 'yes', { liveOutsideWindows: false }, /wait for a window too: .*not "yes"/],
    [
      'holdOnAlerts',
      'critical',
      { alerts: { kind: 'unreadable' } },
      /hold-on-alerts can't be read, so updates wait as if an alert were firing: "critical": expected/,
    ],
    [
      'holdOnQueries',
      ' ',
      { queries: { kind: 'unreadable' } },
      /hold-on-queries can't be read, so updates wait as if a query had a result: it has no query/,
    ],
    ['waves', '{', { waves: ONLY_CANARY }, /waves can't be read, so no node follows the first one: /],
    ['waves', '[]', { waves: ONLY_CANARY }, /no node follows the first one/],
    ['waves', '[{"nodes": 0, "bake": "1h"}]', { waves: ONLY_CANARY }, /no node follows the first one/],
    [
      'waves',
      '[{"nodes": "0%", "bake": "1h"}]',
      { waves: ONLY_CANARY },
      /wave 1: nodes "0%": expected a number/,
    ],
    ['waves', '[{"nodes": 1, "bake": "soon"}]', { waves: ONLY_CANARY }, /wave 1: duration "soon"/],
    [
      'hooksBefore',
      'example.com/lb',
      { hooks: { before: [], after: [] }, closed: "annotation shale.dev/hooks-before can't be read" },
      /no update starts: "example.com\/lb" is no name of a hook/,
    ],
    [
      'hooksAfter',
      '-',
      { closed: "annotation shale.dev/hooks-after can't be read" },
      /no update starts: "-" is no name/,
    ],
    ['soakSeconds', 'long', { soak: Number.POSITIVE_INFINITY }, /one node at a time/],
    ['soakSeconds', '', { soak: Number.POSITIVE_INFINITY }, /one node at a time/],
    ['soakSeconds', '-1', { soak: Number.POSITIVE_INFINITY }, /one node at a time/],
    [
      'failureThreshold',
      '{"canary": 0, "after": 1}',
      { failureThreshold: { unproven: 1, proven: 1 } },
      /canary/,
    ],
    ['unhealthyAfterSeconds', '10m', { unhealthyAfter: 600_000 }, /down for 600 s after its update/],
    ['autoRollback', '', { autoRollback: false }, /nothing is rolled back/],
    ['softReboot', 'True', { softReboot: false }, /every reboot is a full reboot: .*not "True"/],
    ['prefetch', 'yes', { prefetch: false }, /nothing is staged while the pool is paused: .*not "yes"/],
    [
      'rollback',
      '{"config": "x", "image": "os:latest"}',
      { rollback: undefined, closed: `annotation ${annotations.rollback} can't be read` },
      /no update starts: image /,
    ],
    [
      'rollbackDeadline',
      '{"id": "a", "until": "soon"}',
      { deadline: 'unreadable', closed: `annotation ${annotations.rollbackDeadline} can't be read` },
      /no update starts: until /,
    ],
    [
      'rollbackDeadline',
      '2026-06-01T00:00:00Z',
      { deadline: 'unreadable', closed: `annotation ${annotations.rollbackDeadline} can't be read` },
      /no update starts: /,
    ],
  ])('%s: %s', (name, text, expected, problem) => {
    const found = settings({ [name]: text });
    expect(found).toMatchObject(expected);
    expect(found.problems).toEqual([expect.stringMatching(problem)]);
    expect(found.problems[0]).not.toContain('\n');
  });
});

describe('maxUnavailable, which the API server takes as any number or text', () => {
  const of = (maxUnavailable: number | string) => {
    const { closed, problems } = poolSettings(aPool('worker', { maxUnavailable }), options);
    return { closed, problems };
  };

  it.each([0, 1, 3, '0%', '20%', '+50%', '1000%', '-0%'])('%j is read', (setting) => {
    expect(of(setting)).toEqual({ closed: undefined, problems: [] });
  });

  it.each([-1, '-10%'])('%j is negative, so no update starts, as in MCO', (setting) => {
    expect(of(setting).closed).toBe(`spec.maxUnavailable is ${setting}, so no update starts`);
  });

  it.each(['3', 'abc', '1.5%', '%', '++5%'])('%j is no percentage, so one node goes at a time', (setting) => {
    const words = `spec.maxUnavailable ${JSON.stringify(setting)} can't be read, so one node is unavailable at a time: expected a number, or a percentage such as "20%"`;
    expect(of(setting)).toEqual({ closed: undefined, problems: [words] });
  });
});

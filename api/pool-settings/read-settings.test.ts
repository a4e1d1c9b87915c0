import { describe, expect, it } from 'vitest';
import { drivenWarnings, readSettings, settingOf } from './read-settings.ts';
import { poolSettingsTable, type SettingFields, type SettingName, settingNames } from './table.ts';
import { ONLY_CANARY } from './values.ts';

const pool = (shale: object, annotations: Record<string, string> = {}, maxUnavailable?: number | string) => ({
  metadata: { name: 'worker', annotations },
  spec: { shale: shale as SettingFields, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) },
});
const annotationOf = (name: SettingName) => poolSettingsTable[name].former?.annotation ?? '';

describe('a setting is the same as a field and as the annotation of earlier versions', () => {
  it.each<[SettingName, unknown, string, unknown]>([
    ['maintenanceWindows', [], '[]', []],
    ['liveOutsideWindows', true, 'true', true],
    [
      'waves',
      [
        { nodes: 1, bake: '30m' },
        { nodes: '25%', bake: '1h30m' },
      ],
      '[{"nodes": 1, "bake": "30m"}, {"nodes": "25%", "bake": "1h30m"}]',
      [
        { nodes: { kind: 'count', value: 1 }, bake: 1_800_000 },
        { nodes: { kind: 'percent', value: 25 }, bake: 5_400_000 },
      ],
    ],
    ['dependsOn', ['canary', 'infra', 'canary'], 'canary, infra  canary', ['canary', 'infra']],
    ['dependsOn', [], ' ', []],
    [
      'holdOnAlerts',
      ['severity="critical"'],
      'severity="critical"',
      { kind: 'named', questions: [['severity="critical"']] },
    ],
    [
      'holdOnQueries',
      ['up == 0', 'absent(up)'],
      'up == 0\nabsent(up)',
      { kind: 'named', questions: ['up == 0', 'absent(up)'] },
    ],
    ['hooksBefore', ['example.com_noout', 'lb'], 'example.com_noout, lb', ['example.com_noout', 'lb']],
    ['hooksAfter', ['gpu-test'], 'gpu-test', ['gpu-test']],
    ['soak', '0s', '0', 0],
    ['soak', '90s', '90', 90_000],
    ['failureThreshold', { canary: 2, after: 5 }, '{"canary": 2, "after": 5}', { unproven: 2, proven: 5 }],
    ['unhealthyAfter', '30m', '1800', 1_800_000],
    // Who took the one format for the other meant just that.
    ['unhealthyAfter', '10m', '10m', 600_000],
    ['autoRollback', false, 'false', false],
    ['rebootPolicy', 'AtNextReboot', 'AtNextReboot', 'AtNextReboot'],
    ['maxArmed', '20%', '20%', '20%'],
    ['maxArmed', 3, '3', 3],
    ['softReboot', true, 'true', true],
    ['prefetch', true, 'true', true],
    ['updateCordoned', true, 'true', true],
    ['containerRuntime', 'cri-o', 'cri-o', 'cri-o'],
  ])('%s: %j', (name, field, text, value) => {
    const byField = readSettings(pool({ [name]: field }));
    expect([byField.values[name], byField.problems, byField.warnings]).toEqual([value, [], []]);
    const byAnnotation = readSettings(pool({}, { [annotationOf(name)]: text }));
    expect([byAnnotation.values[name], byAnnotation.problems]).toEqual([value, []]);
    expect(byAnnotation.warnings).toEqual([
      `annotation ${annotationOf(name)} is read for one more version only: set spec.shale.${name} instead`,
    ]);
    expect(settingOf(pool({ [name]: field }), name)).toEqual(value);
  });
});

it('without any, a pool has the operator’s own, and the defaults', () => {
  const { values, ...rest } = readSettings({ metadata: { name: 'worker' } }, { soak: 30_000 });
  expect(rest).toEqual({ closed: undefined, problems: [], warnings: [] });
  expect(values).toMatchObject({ soak: 30_000, rebootPolicy: 'Automatic', waves: [] });
  expect(Object.keys(values)).toEqual(settingNames);
});

describe('what can’t be read is replaced by what disrupts least, and reported', () => {
  it.each<[SettingName, unknown, unknown, RegExp]>([
    [
      'maintenanceWindows',
      [{ schedule: '0 22 * * 6', duration: '4h', timeZone: 'Mars/Olympus' }],
      [],
      /so no window opens: window 1: .*Mars\/Olympus/,
    ],
    [
      'waves',
      [{ nodes: 1, bake: '0h' }],
      ONLY_CANARY,
      /so no node follows the first one: wave 1: "0h": expected more than no time/,
    ],
    ['holdOnAlerts', ['critical'], { kind: 'unreadable' }, /updates wait as if an alert .*"critical": exp/],
    ['holdOnQueries', ['%'.repeat(1500)], { kind: 'unreadable' }, /longer than 4096 characters in a URL/],
    ['rebootSentinel', '/run/../a', undefined, /no file on a node requests a reboot: .*without "\.\."/],
    // The API server refuses these; a definition of another version does not.
    ['softReboot', 'True', false, /every reboot is a full reboot: expected true or false/],
    ['rebootPolicy', 'Never', 'AtNextReboot', /Shale reboots no node: expected /],
    ['maxArmed', '0%', 1, /one node is armed at a time: expected a number from 1, or a percentage/],
    ['soak', 'long', Number.POSITIVE_INFINITY, /one node at a time: expected a duration in hours/],
    ['soak', '1d', Number.POSITIVE_INFINITY, /one node at a time/],
  ])('%s: %j', (name, field, value, problem) => {
    const read = readSettings(pool({ [name]: field }));
    expect(read.values[name]).toEqual(value);
    expect(read.problems).toEqual([expect.stringMatching(problem)]);
    expect(read.problems[0]).toMatch(new RegExp(`^spec.shale.${name} can't be read, so `));
    expect(read.problems[0]).not.toContain('\n');
  });

  it.each<[SettingName, string, unknown, RegExp]>([
    ['maintenanceWindows', '{', [], /^annotation shale.dev\/maintenance-windows can't be read, so no window/],
    ['maintenanceWindows', '{}', [], /expected array/],
    [
      'maintenanceWindows',
      '[{"schedule": "0 22 * * 6", "duration": "4h", "timezone": "UTC"}]',
      [],
      /it has fields that are unknown/,
    ],
    ['waves', '[{"nodes": 1}]', ONLY_CANARY, /\[0\].bake: expected string/],
    ['waves', '[{"nodes": 0, "bake": "1h"}]', ONLY_CANARY, /\[0\].nodes: expected a number from 1/],
    ['waves', '[{"nodes": "101%", "bake": "1h"}]', ONLY_CANARY, /\[0\].nodes: expected a number from 1/],
    ['waves', '[{"nodes": 1.5, "bake": "1h"}]', ONLY_CANARY, /\[0\].nodes: expected a number from 1/],
    ['waves', '[{"nodes": 1, "bake": "soon"}]', ONLY_CANARY, /\[0\].bake: expected a duration/],
    ['waves', '[]', ONLY_CANARY, /expected it to have >=1 items/],
    ['soak', '', Number.POSITIVE_INFINITY, /one node at a time/],
    ['soak', '-1', Number.POSITIVE_INFINITY, /one node at a time/],
    ['failureThreshold', '{"canary": 0, "after": 1}', { unproven: 1, proven: 1 }, /canary: expected/],
    ['unhealthyAfter', 'long', 600_000, /the operator's own setting applies/],
    ['autoRollback', '', false, /nothing is rolled back/],
    ['containerRuntime', 'crio', 'unreadable', /container-runtime can't be read, so nothing is rendered/],
  ])('%s by its annotation: %j', (name, text, value, problem) => {
    const read = readSettings(pool({}, { [annotationOf(name)]: text }));
    expect(read.values[name]).toEqual(value);
    expect(read.problems).toEqual([expect.stringMatching(problem)]);
  });

  it.each<[SettingName, readonly string[], RegExp]>([
    ['hooksBefore', ['example.com/lb'], /no update starts: \[0\]: expected the name of a hook/],
    ['hooksAfter', ['-'], /no update starts: \[0\]: expected the name of a hook/],
    ['dependsOn', ['Infra'], /no update starts: \[0\]: expected an object's name/],
  ])('%s: no value is safe', (name, field, problem) => {
    const read = readSettings(pool({ [name]: field }));
    expect(read.closed).toBe(`spec.shale.${name} can't be read`);
    expect(read.problems).toEqual([expect.stringMatching(problem)]);
  });
});

describe('annotations of Shale’s own', () => {
  const warningsOf = (shale: object, annotations: Record<string, string>) =>
    readSettings(pool(shale, annotations)).warnings;

  it('a field outranks its annotation', () => {
    const both = pool({ soak: '1m' }, { 'shale.dev/soak-seconds': '5' });
    expect(readSettings(both).values.soak).toBe(60_000);
    expect(readSettings(both).warnings).toEqual([
      'annotation shale.dev/soak-seconds has no effect, because spec.shale.soak is set: remove it',
    ]);
  });

  it('an unknown one is reported', () => {
    expect(warningsOf({}, { 'shale.dev/wave': '[]' })).toEqual([
      'annotation shale.dev/wave is unknown and has no effect: settings of a pool are fields of spec.shale (kubectl explain mcp.spec.shale)',
    ]);
  });

  it.each([
    'shale.dev/rollback',
    'shale.dev/roll-back-unless-confirmed',
    'shale.dev/source-url',
    'shale.dev/source-revision',
    'argocd.argoproj.io/sync-wave',
  ])('%s is no setting', (name) => expect(warningsOf({}, { [name]: 'x' })).toEqual([]));
});

describe('maxUnavailable, which the API server takes as any number or text', () => {
  const of = (maxUnavailable: number | string) => {
    const { closed, problems } = readSettings(pool({}, {}, maxUnavailable));
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

describe('a pool that Cluster API drives', () => {
  const drivenBy = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } as const;
  const warningsOf = (shale: SettingFields, most?: number) =>
    drivenWarnings(pool(shale, {}, most)).map((line) => line.split(' ')[0]);

  it('warns of what has no effect then', () => {
    const settings = {
      waves: [{ nodes: 1, bake: '1h' }],
      soak: '1m',
      failureDomains: { topologyKey: 'rack' },
    };
    expect(warningsOf({ ...settings, drivenBy }, 2)).toEqual([
      'spec.maxUnavailable',
      'spec.shale.waves',
      'spec.shale.soak',
    ]);
    expect(warningsOf({ drivenBy })).toEqual([]);
    expect(warningsOf(settings, 2)).toEqual([]);
  });

  it('starts nothing where it is unreadable who does', () => {
    const unreadable = { kind: 'MachinePool', namespace: 'default', name: 'workers' };
    const read = readSettings(pool({ drivenBy: unreadable }));
    expect(read).toMatchObject({
      closed: "spec.shale.drivenBy can't be read",
      problems: [
        "spec.shale.drivenBy can't be read, so no update starts: kind: expected MachineDeployment or KubeadmControlPlane",
      ],
    });
  });
});

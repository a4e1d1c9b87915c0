import { expect, test } from 'vitest';
import { hasEnded, outcomeOf } from '../api/build-outcome.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { parseDigestedPullspec } from '../api/references.ts';
import { ownConditions } from '../test/fixtures/kstatus.ts';
import { type BuildPhase, buildStatus } from './status.ts';

const image = parseDigestedPullspec(`registry.example.com/os/worker@sha256:${'a'.repeat(64)}`);
const now = '2026-01-01T00:00:00Z';

test('a status shows a bounded part of long lists: the first transitions, the last lines of a log', () => {
  const status = buildStatus(
    undefined,
    {
      kind: 'succeeded',
      image,
      baseImage: image,
      way: 'Engine',
      transitions: Array.from({ length: 300 }, (_, at) => ({ from: `config ${at}`, actions: 'None' })),
      summary: 'built',
      bytes: { sent: 0, mounted: 0 },
      logTail: Array.from({ length: 1000 }, (_, at) => `line ${at}`),
    },
    now,
  );
  expect(status.transitions).toHaveLength(50);
  expect(status.transitions?.[0]?.from).toBe('config 0');
  expect(status.logTail).toHaveLength(200);
  expect(status.logTail?.at(-1)).toBe('line 999');
});

const succeeded: BuildPhase = {
  kind: 'succeeded',
  image,
  baseImage: image,
  way: 'Append',
  transitions: [],
  summary: 'built',
  bytes: { sent: 0, mounted: 0 },
};
const later = '2026-01-01T00:00:09Z';
const line = (status: ReturnType<typeof buildStatus>) =>
  ownConditions(status.conditions).map(({ type, status: value, reason }) => `${type}=${value} ${reason}`);

test.each<[BuildPhase, string[]]>([
  [{ kind: 'started' }, ['Prepared=True Prepared', 'Building=True Building']],
  [{ kind: 'retrying', attempt: 1, reason: 'BuildError', why: 'down', inMs: 1 }, ['Building=True Retrying']],
  [succeeded, ['Prepared=True Prepared', 'Building=False Succeeded', 'Succeeded=True Succeeded']],
  [
    { kind: 'failed', reason: 'NoEngine', message: 'm' },
    ['Prepared=True Prepared', 'Building=False Failed', 'Failed=True NoEngine'],
  ],
  [{ kind: 'interrupted', message: 'm' }, ['Building=False Interrupted', 'Interrupted=True Interrupted']],
])('the conditions of a new build: $0.kind', (phase, expected) => {
  expect(line(buildStatus(undefined, phase, now))).toEqual(expected);
});

test.each([
  [5, 'Attempt 2 of 5 failed (RegistryUnavailable); the next one starts at 2026-01-01T00:00:02Z: down'],
  [undefined, 'Attempt 2 failed (RegistryUnavailable); the next one starts at 2026-01-01T00:00:02Z: down'],
])('a retry reports the attempt of %s, when the next one starts, and the cause', (of, message) => {
  const failed = { kind: 'retrying', attempt: 2, reason: 'RegistryUnavailable', why: 'down' } as const;
  const status = buildStatus(undefined, { ...failed, inMs: 1_001, logTail: ['last'], of }, now);
  expect(status).toMatchObject({ attempts: 2, logTail: ['last'] });
  expect(ownConditions(status.conditions).map((condition) => condition.message)).toEqual([message]);
});

test('times: the start stays, the end is that of the last phase, a condition keeps the time of its last transition', () => {
  const started = buildStatus(undefined, { kind: 'started' }, now);
  expect(started).toMatchObject({ buildStart: now });
  expect(started.buildEnd).toBeUndefined();
  for (const phase of [
    succeeded,
    { kind: 'failed', reason: 'NotOnBase', message: '' } as const,
    { kind: 'interrupted', message: '' } as const,
  ]) {
    const over = buildStatus(started, phase, later);
    expect(over).toMatchObject({ buildStart: now, buildEnd: later });
    const times = Object.fromEntries(over.conditions?.map((one) => [one.type, one.lastTransitionTime]) ?? []);
    expect(times).toMatchObject({ Prepared: now, Building: later });
    expect(buildStatus(undefined, phase, later)).toMatchObject({ buildStart: later });
  }
  expect(buildStatus(started, { kind: 'started' }, later)).toEqual(started);
});

test.each([
  succeeded,
  { kind: 'failed', reason: 'NotOnBase', message: '' } as const,
  { kind: 'interrupted', message: '' } as const,
])('a build that a clock ahead of this one started has not ended before its start: $kind', (phase) => {
  const started = buildStatus(undefined, { kind: 'started' }, later);
  const over = buildStatus(started, phase, now);
  expect(over).toMatchObject({ buildStart: later, buildEnd: later });
});

test('what is absent is not written', () => {
  const bare = buildStatus(undefined, succeeded, now);
  for (const key of ['engineImage', 'instances', 'logTail']) expect(Object.keys(bare)).not.toContain(key);
  const failed = buildStatus(
    undefined,
    { kind: 'failed', reason: 'NotOnBase', message: '', logTail: [] },
    now,
  );
  expect(Object.keys(failed)).not.toContain('logTail');
  const instances = [{ architecture: 'amd64', image, baseImage: image }];
  expect(buildStatus(undefined, { ...succeeded, engineImage: image, instances }, now)).toMatchObject({
    engineImage: image,
    instances,
    builder: { imageBuilderType: 'Append' },
  });
});

test('a long message is cut to what the schema allows', () => {
  const status = buildStatus(undefined, { kind: 'interrupted', message: 'x'.repeat(5_000) }, now);
  expect(ownConditions(status.conditions).at(-1)?.message).toHaveLength(2_048);
});

test.each<[BuildPhase['kind'], ReturnType<typeof outcomeOf>]>([
  ['started', undefined],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['interrupted', 'Interrupted'],
])('the outcome of a build that has %s', (kind, outcome) => {
  const phases = {
    started: { kind: 'started' },
    succeeded,
    failed: { kind: 'failed', reason: 'NotOnBase', message: '' },
    interrupted: { kind: 'interrupted', message: '' },
  } as const;
  const status = buildStatus(undefined, phases[kind as keyof typeof phases], now);
  const build = { status } as MachineOSBuild;
  expect(outcomeOf(build)).toBe(outcome);
  expect(hasEnded(build)).toBe(outcome !== undefined);
  expect(hasEnded({} as MachineOSBuild)).toBe(false);
});

test('a condition that is not True is no outcome', () => {
  const condition = {
    type: 'Failed',
    status: 'False',
    reason: 'NotOnBase',
    message: '',
    lastTransitionTime: now,
  } as const;
  expect(outcomeOf({ status: { conditions: [condition] } } as unknown as MachineOSBuild)).toBeUndefined();
});

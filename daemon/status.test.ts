import { expect, test } from 'vitest';
import type { RepairRecord } from '../api/annotation-requests.ts';
import {
  type MachineConfigNodeStatus,
  MachineConfigNodeStatus as StatusSchema,
  type UpdatePlan,
  type UpdateRecord,
} from '../api/machine-config-node.ts';
import { SHALE_VERSION } from '../api/names.ts';
import { LONGEST_MESSAGE, toSeconds } from '../api/object.ts';
import { present } from '../api/present.ts';
import { kstatus } from '../test/fixtures/kstatus.ts';
import {
  conditions,
  image,
  later,
  MCO_CONDITIONS,
  noon,
  object,
  phases,
  plan,
  report,
} from '../test/fixtures/node-report.ts';
import { statusOf } from './status.ts';
import type { NodeReport, Phase } from './steps/phase.ts';

test.each([
  [undefined, 'PrepareFailed'],
  [true, 'PrepareRefused'],
])('what keeps the target from the disk, refused: %s', (refused, reason) => {
  const phase: Phase = { kind: 'preparing', problem: 'why', ...present({ refused }) };
  const said = statusOf(object(), report(phase), noon).conditions?.find(
    ({ type }) => type === 'UpdatePrepared',
  );
  expect(said).toMatchObject({ status: 'False', reason, message: 'why' });
});

test.each<[Phase, readonly string[], readonly string[]]>([
  [{ kind: 'updated' }, ['Updated'], []],
  [{ kind: 'preparing' }, [], []],
  [{ kind: 'waiting', plan, why: '' }, ['UpdatePrepared', 'ImagePulledFromRegistry'], []],
  [{ kind: 'armed', plan }, ['UpdatePrepared', 'ImagePulledFromRegistry'], []],
  [
    { kind: 'applying', plan, doing: 'files' },
    ['UpdatePrepared', 'ImagePulledFromRegistry'],
    ['UpdateExecuted', 'AppliedFiles'],
  ],
  [
    { kind: 'rebooting', plan },
    ['UpdatePrepared', 'ImagePulledFromRegistry', 'UpdateExecuted', 'AppliedFiles', 'AppliedOSImage'],
    ['RebootedNode'],
  ],
  [
    { kind: 'verifying', plan, doing: 'runs 10-net' },
    [
      'UpdatePrepared',
      'ImagePulledFromRegistry',
      'UpdateExecuted',
      'AppliedFiles',
      'AppliedOSImage',
      'RebootedNode',
    ],
    ['UpdatePostActionComplete'],
  ],
  [
    { kind: 'rollingBack', plan, why: '10-net failed', reason: 'HealthCheckFailed' },
    [
      'UpdatePrepared',
      'ImagePulledFromRegistry',
      'UpdateExecuted',
      'AppliedFiles',
      'AppliedOSImage',
      'NodeDegraded',
    ],
    ['RebootedNode'],
  ],
  [{ kind: 'degraded', why: 'broken', reason: 'UpdateFailed' }, ['NodeDegraded'], []],
])('%j', (phase, yes, unknown) => {
  const status = statusOf(object(), report(phase), noon);
  expect(conditions(status, 'True').toSorted()).toEqual(yes.toSorted());
  expect(conditions(status, 'Unknown')).toEqual(unknown);
});

test('names what was changed by hand until another target is on the disk', () => {
  const drift = (path: string) => ({ path, what: 'mode', message: `${path}: has mode 0600` }) as const;
  const byHand = Array.from({ length: 12 }, (_, index) => drift(`/etc/${index}`));
  const after = (...phases: readonly Phase[]) =>
    phases.reduce<MachineConfigNodeStatus | undefined>(
      (before, phase) => statusOf(object(before), report(phase), noon),
      undefined,
    )?.changedByHand;
  const drifted: Phase = { kind: 'drifted', reason: 'ConfigDrift', why: 'w', byHand };
  expect(after(drifted)).toMatchObject({ count: 12, paths: { length: 10 } });
  expect(after(drifted)?.paths[0]).toEqual({ path: '/etc/0', message: '/etc/0: has mode 0600' });
  const refused: Phase = { kind: 'preparing', problem: 'w', refused: true, byHand: [drift('/etc/a')] };
  expect(after(refused)?.count).toBe(1);
  expect(after(refused, { kind: 'preparing' })).toBeUndefined();
  expect(after(drifted, { kind: 'preparing' })?.count).toBe(12);
  expect(after(drifted, { kind: 'preparing' }, { kind: 'waiting', plan, why: '' })).toBeUndefined();
  expect(after(drifted, { kind: 'updated' })).toBeUndefined();
});

const refused: Phase = { kind: 'preparing', problem: 'a disk', refused: true };
const degraded: Phase = { kind: 'degraded', why: 'broken', reason: 'UpdateFailed' };
test.each<[string, readonly Phase[], string, string]>([
  ['runs its target', [{ kind: 'updated' }], 'Current', 'Ready'],
  ['stages another one', [{ kind: 'updated' }, { kind: 'preparing' }], 'InProgress', 'Preparing'],
  ['can’t reach the registry', [{ kind: 'preparing', problem: 'x' }], 'InProgress', 'PrepareFailed'],
  ['can’t take it', [refused], 'Failed', 'PrepareRefused'],
  [
    'boots its target next',
    [{ kind: 'armed', plan: { ...plan, nextBoot: true } }],
    'InProgress',
    'AtNextReboot',
  ],
  ['waits for its turn', [{ kind: 'waiting', plan, why: 'w' }], 'InProgress', 'AwaitingGrant'],
  ['applies it', [{ kind: 'applying', plan, doing: 'd' }], 'InProgress', 'Applying'],
  ['reboots', [{ kind: 'rebooting', plan }], 'InProgress', 'Rebooting'],
  ['checks its health', [{ kind: 'verifying', plan, doing: 'd' }], 'InProgress', 'HealthChecks'],
  [
    'rolls back',
    [{ kind: 'rollingBack', plan, why: 'w', reason: 'HealthCheckFailed' }],
    'InProgress',
    'RollingBack',
  ],
  ['has rolled back', [degraded], 'Failed', 'UpdateFailed'],
  [
    'was changed by hand',
    [{ kind: 'drifted', reason: 'ConfigDrift', why: 'w', byHand: [] }],
    'Failed',
    'ConfigDrift',
  ],
  ['stages what follows a failure', [degraded, { kind: 'preparing' }], 'InProgress', 'Preparing'],
  [
    'has staged what follows a failure',
    [degraded, { kind: 'waiting', plan, why: 'w' }],
    'InProgress',
    'AwaitingGrant',
  ],
])('what tools say of a node that %s', (_what, seen, expected, reason) => {
  const generation = 4;
  const status = seen.reduce<MachineConfigNodeStatus | undefined>(
    (before, phase) => statusOf(object(before), report(phase, { generation }), noon),
    undefined,
  );
  expect(kstatus({ metadata: { generation }, status })).toBe(expected);
  expect(status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
    reason,
    observedGeneration: generation,
  });
  // The operator has assigned another target meanwhile.
  expect(kstatus({ metadata: { generation: generation + 1 }, status })).toBe('InProgress');
});

test.each(phases)('every status is one that the API server takes: %j', (phase) => {
  expect(StatusSchema.parse(statusOf(object(), report(phase), noon))).toBeDefined();
});

test.each(phases)('saying the same again changes nothing: %j', (phase) => {
  const status = statusOf(object(), report(phase), noon);
  expect(statusOf(object(status), report(phase), later)).toEqual(status);
});

test.each(phases)('each condition has a reason and a message: %j', (phase) => {
  const certificates = { registryCAs: 'sha256:new' };
  const wanted = { ...object(), spec: { ...object().spec, certificates } };
  const said = statusOf(wanted, report(phase), noon).conditions ?? [];
  expect(said.map(({ type }) => type)).toEqual(expect.arrayContaining([...MCO_CONDITIONS, 'NodeDegraded']));
  expect(said.filter(({ reason, message }) => reason === '' || message === '')).toEqual([]);
});

test('cordons and drains are the operator’s to tell of: its conditions stay', () => {
  const lastTransitionTime = noon.toISOString();
  const drained = { type: 'Drained', status: 'True', reason: 'Drained', message: 'by the operator' } as const;
  const before = { conditions: [{ ...drained, lastTransitionTime }] };
  for (const phase of phases) {
    const said = statusOf(object(before), report(phase), later).conditions ?? [];
    expect(said.filter(({ type }) => /^(Cordoned|Drained|Uncordoned)$/.test(type))).toEqual(
      before.conditions,
    );
  }
});

test('tells what the node runs, and beside it what it should', () => {
  expect(statusOf(object(), report({ kind: 'waiting', plan, why: '' }), noon)).toMatchObject({
    observedGeneration: 3,
    configVersion: { current: 'rendered-1', desired: 'rendered-2' },
    configImage: { currentImage: image('1'), desiredImage: image('2') },
    mode: 'Layered',
    baseImage: image('0'),
    bootID: 'boot-1',
    daemonVersion: SHALE_VERSION,
    plan,
  });
});

test('a fresh node has no config, and its base is what it booted', () => {
  const status = statusOf(object(), report({ kind: 'preparing' }, { current: undefined }), noon);
  expect(status).toMatchObject({ configVersion: { current: '' }, baseImage: image('1') });
  expect(status.mode).toBeUndefined();
});

test('a failure is over once another target is staged, not before', () => {
  const failed = statusOf(
    object(),
    report({ kind: 'degraded', why: 'broken', reason: 'UpdateFailed' }),
    noon,
  );
  const preparing = statusOf(object(failed), report({ kind: 'preparing' }), later);
  expect(conditions(preparing, 'True')).toEqual(['NodeDegraded']);
  const staged = statusOf(object(preparing), report({ kind: 'waiting', plan, why: '' }), later);
  expect(conditions(staged, 'True')).not.toContain('NodeDegraded');
});

test('a verification has the check, what it printed and a deadline, which stays while it is about the same', () => {
  const at = (leftMs: number, before: Partial<MachineConfigNodeStatus> = {}) => {
    const failed = { check: '10-net', output: 'failed: no route' };
    const phase: Phase = { kind: 'verifying', plan, doing: 'health check 10-net failed', failed, leftMs };
    return statusOf({ ...object(), status: before }, report(phase), noon);
  };
  const first = at(60_000);
  const deadline = toSeconds(new Date(noon.getTime() + 60_000));
  expect(first.verification).toEqual({
    waitsFor: 'health check 10-net failed',
    check: '10-net',
    output: 'failed: no route',
    deadline,
  });
  const message = first.conditions?.find(({ type }) => type === 'UpdatePostActionComplete')?.message;
  expect(message).toBe(`health check 10-net failed; until ${deadline} at the latest`);
  expect(at(62_000, first)).toEqual(first);
  expect(at(90_000, first).verification?.deadline).not.toBe(deadline);
  const over = statusOf({ ...object(), status: first }, report({ kind: 'updated' }), noon);
  expect(over).not.toHaveProperty('verification');
});

test('plan and progress go when they are over', () => {
  const staging = { bytesDone: 1, bytesTotal: 2 };
  const preparing = statusOf(object(), report({ kind: 'preparing', staging }), noon);
  expect(preparing.staging).toEqual(staging);
  const updated = statusOf(object({ ...preparing, plan }), report({ kind: 'updated' }), later);
  expect(updated).not.toHaveProperty('staging');
  expect(updated).not.toHaveProperty('plan');
});

test('a status has no more causes than its schema takes, the first of them', () => {
  const causes: UpdatePlan['causes'] = Array.from({ length: 51 }, (_, index) => ({
    subject: `/etc/${index}`,
    kind: 'file',
    change: 'changed',
    rule: 'default',
    actions: [],
  }));
  const lastUpdate: NodeReport['lastUpdate'] = {
    config: 'rendered-1',
    actions: [],
    causes,
    source: 'test',
    startedAt: noon.toISOString(),
    finishedAt: noon.toISOString(),
    bootIDBefore: 'a',
    bootIDAfter: 'b',
    result: 'Succeeded',
  };
  const phase: Phase = { kind: 'waiting', plan: { ...plan, causes }, why: 'w' };
  const status = statusOf(object(), report(phase, { lastUpdate }), noon);
  const first = causes.slice(0, 50);
  expect(status.plan).toMatchObject({ causes: first });
  expect(status.lastUpdate?.causes).toEqual(first);
});

test('a status keeps what is written beside it, and has nothing of what there is not', () => {
  const before = { pinnedImageSets: [{ name: 'one', currentGeneration: 1 }] } as MachineConfigNodeStatus;
  expect(statusOf(object(before), report({ kind: 'updated' }), noon).pinnedImageSets).toEqual(
    before.pinnedImageSets,
  );
  const own = {
    plan,
    staging: { bytesDone: 1, bytesTotal: 2 },
    verification: { waitsFor: 'the kubelet' },
    changedByHand: { count: 1, paths: [] },
    certificates: { registryCAs: 'sha256:old' },
    lastUpdate: {} as UpdateRecord,
    lastRepair: {} as RepairRecord,
  };
  const status = statusOf(object(own), report({ kind: 'updated' }), noon);
  for (const name of ['pinnedImageSets', ...Object.keys(own)]) expect(status).not.toHaveProperty(name);
  const osBackend = { name: 'bootc', installsPackages: false, versionUnknown: 'no such command' } as const;
  const more = { certificates: { registryCAs: 'sha256:ca' }, osBackend };
  expect(statusOf(object(), report({ kind: 'updated' }, more), noon)).toMatchObject({
    certificates: { registryCAs: 'sha256:ca' },
    osBackend: { name: 'bootc', installsPackages: false },
  });
});

test('a status is of the spec that the daemon has looked at, not of a later one', () => {
  const status = statusOf(object(), report({ kind: 'updated' }, { generation: 2 }), noon);
  expect(status.observedGeneration).toBe(2);
  expect(new Set(status.conditions?.map(({ observedGeneration }) => observedGeneration))).toEqual(
    new Set([2]),
  );
});

test('a message that is too long is cut', () => {
  const why = 'x'.repeat(LONGEST_MESSAGE + 1);
  const { conditions } = statusOf(object(), report({ kind: 'degraded', why, reason: 'UpdateFailed' }), noon);
  expect(conditions?.find(({ type }) => type === 'NodeDegraded')?.message).toBe(why.slice(1));
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Grant, UpdatePlan } from '../api/machine-config-node.ts';
import {
  at,
  backByHost,
  base,
  begun,
  grant,
  image,
  journal,
  layered,
  prepared,
  REPAIR,
  RETRY,
  restart,
  rollingBack,
  sick,
  spec,
  standard,
  stuck,
  verifying,
  wanted,
  watchdog,
  withheld,
} from '../test/fixtures/daemon-observation.ts';
import { decide } from './decide.ts';
import type { DaemonObservation } from './steps/step.ts';

const failedTwo = { spec: layered('rendered-2', '2'), failed: sick };

const POWER_OFF = { bootID: 'boot-1', by: 'ann', reason: '', at: '', leaseHolder: 'shale-maintenance/ann' };

describe('decide', () => {
  test.each<[string, DaemonObservation, string]>([
    ['a node that is what it should be', at({}), 'idle'],
    ['a new image', at({ spec: layered('rendered-2', '2') }), 'prepare'],
    ['the same config in another image', at({ spec: layered('rendered-1', '3') }), 'prepare'],
    [
      'a plan for another target',
      at({ spec: layered('rendered-2', '2'), prepared: prepared('rendered-2', '9', []) }),
      'prepare',
    ],
    [
      'a plan that is not staged',
      at({ spec: layered('rendered-2', '2'), prepared: prepared('rendered-2', '2', [], false) }),
      'prepare',
    ],
    [
      'a target that is prepared, granted and found irreconcilable since',
      wanted([restart], { ...grant('Live', 'rendered-2', '2'), irreconcilable: 'disks' }),
      'prepare',
    ],
    ['no grant', wanted([restart], {}), 'awaitGrant'],
    ['a grant for another image', wanted([restart], grant('Disrupt', 'rendered-2', '9')), 'awaitGrant'],
    ['leave to act live', wanted([restart], grant('Live', 'rendered-2', '2')), 'apply'],
    [
      'leave to disrupt is leave to act live',
      wanted([restart], grant('Disrupt', 'rendered-2', '2')),
      'apply',
    ],
    [
      'a drain needs more than leave to act live',
      wanted([{ type: 'Drain' }, restart], grant('Live', 'rendered-2', '2')),
      'awaitGrant',
    ],
    [
      'a drained node acts',
      wanted([{ type: 'Drain' }, restart], grant('Disrupt', 'rendered-2', '2')),
      'apply',
    ],
    [
      'a reboot needs more than leave to act live',
      wanted([{ type: 'Reboot' }], grant('Live', 'rendered-2', '2')),
      'awaitGrant',
    ],
    ['a drained node reboots', wanted([{ type: 'Reboot' }], grant('Disrupt', 'rendered-2', '2')), 'reboot'],
    ['opting out', at({ spec: spec('rendered-1', { osImage: base }) }), 'prepare'],
    ['a fresh node', at({ current: undefined, spec: spec('rendered-1') }), 'prepare'],
    [
      'another stock image in standard mode',
      at({
        current: standard,
        spec: spec('rendered-1', { osImage: image('8') }),
      }),
      'prepare',
    ],
    [
      'certificates first',
      at({ spec: layered('rendered-2', '2', { certificates: { registryCAs: 'sha256:x' } }) }),
      'applyCertificate',
    ],
    [
      'certificates also while an update is under way',
      at({
        journal: journal('applying'),
        spec: layered('rendered-2', '2', { certificates: { registryCAs: 'sha256:x' } }),
      }),
      'applyCertificate',
    ],
    [
      'certificates that could not be had keep nothing else up',
      at({
        withheld: new Map([['registryCAs', { ...withheld, version: 'sha256:x' }]]),
        spec: layered('rendered-2', '2', { certificates: { registryCAs: 'sha256:x' } }),
      }),
      'prepare',
    ],
    [
      'certificates that could not be had, in another version',
      at({
        withheld: new Map([['registryCAs', { ...withheld, version: 'sha256:old' }]]),
        spec: layered('rendered-2', '2', { certificates: { registryCAs: 'sha256:x' } }),
      }),
      'applyCertificate',
    ],
    [
      'certificates that a config had, under another config',
      at({
        withheld: new Map([['kubeletCA', { ...withheld, under: 'rendered-0' }]]),
        spec: layered('rendered-1', '1', { certificates: { kubeletCA: 'v' } }),
      }),
      'applyCertificate',
    ],
    ['a plan of other policies', wanted([restart], { policyDigest: 'sha256:new' }), 'prepare'],
    [
      'certificates that are there',
      at({
        certificates: { registryCAs: 'sha256:x' },
        spec: layered('rendered-1', '1', { certificates: { registryCAs: 'sha256:x' } }),
      }),
      'idle',
    ],
    ['a repair on a node at its target', at({ repair: REPAIR }), 'repair'],
    ['a repair on a fresh node', at({ repair: REPAIR, current: undefined }), 'repair'],
    ['a repair before a new target', at({ repair: REPAIR, spec: layered('rendered-2', '2') }), 'repair'],
    [
      'a repair before an update that is granted',
      { ...wanted([restart], grant('Live', 'rendered-2', '2')), repair: REPAIR },
      'repair',
    ],
    [
      'a repair after a failed update',
      at({ repair: REPAIR, spec: layered('rendered-2', '2'), failed: sick }),
      'repair',
    ],
    [
      'no repair in the middle of an update',
      at({ repair: REPAIR, journal: journal('applying') }),
      'applyAgain',
    ],
    ['no repair before a reboot', at({ repair: REPAIR, journal: journal('rebooting') }), 'rebootAgain'],
    ['no repair between two states', { ...stuck(layered('rendered-2', '2')), repair: REPAIR }, 'awaitGrant'],
    ['killed while it applied', at({ journal: journal('applying') }), 'applyAgain'],
    ['killed before the reboot came', at({ journal: journal('rebooting') }), 'rebootAgain'],
    ...([2, 3] as const).flatMap((rebootRequests): [string, DaemonObservation, string][] => {
      const step = rebootRequests === 3 ? 'degraded' : undefined;
      const asked = { ...journal('rebooting'), rebootRequests };
      return [
        [`the same boot after ${rebootRequests} requests`, at({ journal: asked }), step ?? 'rebootAgain'],
        [
          `the same boot after ${rebootRequests} requests to roll back`,
          at({ journal: { ...rollingBack, rebootRequests }, bootID: 'boot-2' }),
          step ?? 'rollBack',
        ],
        [
          `another boot after ${rebootRequests} requests`,
          at({ journal: asked, bootID: 'boot-2', bootedImage: image('2') }),
          'verify',
        ],
      ];
    }),
    [
      'booted into the target',
      at({ journal: journal('rebooting'), bootID: 'boot-2', bootedImage: image('2') }),
      'verify',
    ],
    [
      'a power failure while it applied, with the target staged',
      at({ journal: journal('applying'), bootID: 'boot-2', bootedImage: image('2') }),
      'verify',
    ],
    [
      'the daemon starts anew while it verifies',
      at({ journal: verifying, bootID: 'boot-2', bootedImage: image('2') }),
      'verify',
    ],
    [
      'a power failure while it verifies',
      at({ journal: verifying, bootID: 'boot-3', bootedImage: image('2') }),
      'verify',
    ],
    ['somebody else rolled back while it verifies', at({ journal: verifying, bootID: 'boot-3' }), 'fail'],
    ['not healthy', at({ journal: rollingBack, bootID: 'boot-2', bootedImage: image('2') }), 'rollBack'],
    ['booted what ran before', at({ journal: rollingBack, bootID: 'boot-3' }), 'finishRollback'],
    [
      'booted what ran before, whatever that was',
      at({ journal: rollingBack, bootID: 'boot-3', current: undefined, bootedImage: undefined }),
      'finishRollback',
    ],
    [
      'booted the target again when it was to roll back',
      at({ journal: rollingBack, bootID: 'boot-3', bootedImage: image('2') }),
      'fail',
    ],
    [
      'booted the target without its kernel',
      at({ journal: journal('rebooting'), bootID: 'boot-1+1', bootedImage: image('2') }),
      'verify',
    ],
    [
      'rebooted softly, and not into the target',
      at({ journal: journal('rebooting'), bootID: 'boot-1+1' }),
      'rebootAgain',
    ],
    ['booted into something else', at({ journal: journal('rebooting'), bootID: 'boot-2' }), 'fail'],
    ...(['applying', 'rebooting'] as const).map((step): [string, DaemonObservation, string] => [
      `the host rolled back by itself, the journal being at ${step}`,
      at({ journal: journal(step), bootID: 'boot-3', watchdog }),
      'recordHostRollback',
    ]),
    [
      'the host rolled back by itself, by an image that is the same',
      at({ journal: journal('rebooting'), bootID: 'boot-3', bootedImage: image('2'), watchdog }),
      'recordHostRollback',
    ],
    [
      'the host rolled back after a boot in which the daemon was there',
      at({ journal: verifying, bootID: 'boot-4', watchdog }),
      'recordHostRollback',
    ],
    [
      'the host meant to roll back, and has booted the target',
      at({
        journal: journal('rebooting'),
        bootID: 'boot-3',
        bootedImage: image('2'),
        bootedDeployment: 'new.0',
        watchdog,
      }),
      'verify',
    ],
    [
      'the host rolled back to what another image was applied on',
      at({ journal: backByHost, bootID: 'boot-3', bootedImage: image('7'), watchdog }),
      'finishRollback',
    ],
    [
      'the host rolled back, and what it left is put right',
      at({ journal: backByHost, bootID: 'boot-2', watchdog }),
      'rollBack',
    ],
    [
      'the host rolled back, and somebody booted the target again',
      at({
        journal: backByHost,
        bootID: 'boot-4',
        bootedImage: image('2'),
        bootedDeployment: 'new.0',
        watchdog,
      }),
      'fail',
    ],
    ['a mark without an update', at({ watchdog }), 'idle'],
    [
      'a power failure while files were written',
      at({ journal: journal('applying', { next: standard }), bootID: 'boot-2' }),
      'applyAgain',
    ],
    [
      'back on the stock image',
      at({
        journal: journal('rebooting', { next: standard }),
        bootID: 'boot-2',
        bootedImage: base,
      }),
      'verify',
    ],
    [
      'not back on the stock image',
      at({ journal: journal('rebooting', { next: standard }), bootID: 'boot-2' }),
      'fail',
    ],
    [
      'the update under way ends before a newer one begins',
      at({ journal: journal('applying'), spec: layered('rendered-3', '3') }),
      'applyAgain',
    ],
    [
      'a power failure while it applied, with the old image as the next boot',
      at({ journal: journal('applying'), bootID: 'boot-2' }),
      'applyAgain',
    ],
    ['a live apply that failed waits for a grant to reboot', stuck(layered('rendered-2', '2')), 'awaitGrant'],
    [
      'and leave to act live is not enough',
      stuck(layered('rendered-2', '2', grant('Live', 'rendered-2', '2'))),
      'awaitGrant',
    ],
    [
      'and with leave reboots',
      stuck(layered('rendered-2', '2', grant('Disrupt', 'rendered-2', '2'))),
      'reboot',
    ],
    ['or into a newer target', stuck(layered('rendered-3', '3')), 'prepare'],
    ['or back into what ran before', stuck(layered('rendered-1', '1')), 'prepare'],
    [
      'but not live',
      stuck(
        layered('rendered-3', '3', grant('Disrupt', 'rendered-3', '3')),
        prepared('rendered-3', '3', [restart]),
      ),
      'prepare',
    ],
    [
      'only by a reboot',
      stuck(
        layered('rendered-3', '3', grant('Disrupt', 'rendered-3', '3')),
        prepared('rendered-3', '3', [{ type: 'Reboot' }]),
      ),
      'reboot',
    ],
    [
      'a target that failed is not tried again',
      at({ spec: layered('rendered-2', '2'), failed: sick }),
      'degraded',
    ],
    ['a machine that a maintenance powers off', at({ powerOff: POWER_OFF }), 'powerOff'],
    [
      'a power-off before a repair and an update',
      at({ powerOff: POWER_OFF, repair: REPAIR, spec: layered('rendered-2', '2') }),
      'powerOff',
    ],
    [
      'a power-off of a node that the maintenance holds',
      at({ powerOff: POWER_OFF, spec: layered('rendered-1', '1', { heldBy: 'ann' }) }),
      'powerOff',
    ],
    [
      'no power-off while an update is under way',
      at({ powerOff: POWER_OFF, journal: journal('applying') }),
      'applyAgain',
    ],
    ['a requested reboot waits for its grant', at({ rebootRequested: 'ann asks' }), 'awaitReboot'],
    [
      'a requested reboot that may act live only',
      at({ rebootRequested: 'ann asks', spec: layered('rendered-1', '1', grant('Live', 'rendered-1', '1')) }),
      'awaitReboot',
    ],
    [
      'a requested reboot that is granted',
      at({
        rebootRequested: 'ann asks',
        spec: layered('rendered-1', '1', grant('Disrupt', 'rendered-1', '1')),
      }),
      'reboot',
    ],
    [
      'a requested reboot of a node that has a new target goes with the update',
      at({ rebootRequested: 'ann asks', spec: layered('rendered-2', '2') }),
      'prepare',
    ],
    ['a repair before a requested reboot', at({ rebootRequested: 'ann asks', repair: REPAIR }), 'repair'],
    ['unless it is requested', at({ ...failedTwo, retry: RETRY }), 'prepare'],
    [
      'a retry that is prepared waits for its grant',
      { ...wanted([{ type: 'Reboot' }], {}), failed: sick, retry: RETRY },
      'awaitGrant',
    ],
    [
      'and for no more than a live update',
      { ...wanted([{ type: 'Reboot' }], grant('Live', 'rendered-2', '2')), failed: sick, retry: RETRY },
      'awaitGrant',
    ],
    [
      'a retry that is granted',
      { ...wanted([{ type: 'Reboot' }], grant('Disrupt', 'rendered-2', '2')), failed: sick, retry: RETRY },
      'reboot',
    ],
    ['a repair before a retry', at({ ...failedTwo, repair: REPAIR, retry: RETRY }), 'repair'],
    [
      'no retry while the failed update is rolled back',
      at({ ...failedTwo, retry: RETRY, journal: rollingBack, bootID: 'boot-2' }),
      'rollBack',
    ],
    ['another target is', at({ spec: layered('rendered-3', '3'), failed: sick }), 'prepare'],
    [
      'whose health a retry doesn’t vouch for',
      at({ ...failedTwo, current: begun.next, retry: RETRY }),
      'recheck',
    ],
    [
      'a node that runs its target and was not healthy',
      at({ spec: layered('rendered-2', '2'), current: begun.next, failed: sick }),
      'recheck',
    ],
    [
      'a target whose content somebody changes is looked at',
      at({
        spec: layered('rendered-2', '2'),
        current: begun.next,
        failed: { ...sick, reason: 'ConfigDrift' },
      }),
      'idle',
    ],
    [
      'and is gone to again by a node that left it',
      at({ spec: layered('rendered-2', '2'), failed: { ...sick, reason: 'ConfigDrift' } }),
      'prepare',
    ],
    ['rolling back after a failure', at({ failed: sick }), 'idle'],
  ])('%s', (_name, seen, kind) => {
    expect(decide(seen).kind).toBe(kind);
  });
});

test('whatever else is so, nothing disruptive happens without a grant for exactly that target', () => {
  const actions = fc.subarray<UpdatePlan['actions'][number]>([
    { type: 'Drain' },
    restart,
    { type: 'Reboot' },
  ]);
  const grants = fc.option(
    fc.record({
      level: fc.constantFrom<Grant['level']>('Live', 'Disrupt'),
      config: fc.constantFrom('rendered-1', 'rendered-2'),
      digit: fc.constantFrom('1', '2'),
    }),
    { nil: undefined },
  );
  fc.assert(
    fc.property(actions, grants, (planned, given) => {
      const more = given === undefined ? {} : grant(given.level, given.config, given.digit);
      const step = decide(wanted(planned, more));
      if (step.kind !== 'apply' && step.kind !== 'reboot') return;
      expect(given).toMatchObject({ config: 'rendered-2', digit: '2' });
      if (planned.some(({ type }) => type !== 'Restart')) expect(given?.level).toBe('Disrupt');
    }),
  );
});

describe('while somebody else holds the node', () => {
  const heldBy = 'its lease is held by ops';
  const reboot = [{ type: 'Reboot' }] as const;
  const registryCAs = { certificates: { registryCAs: 'sha256:x' } };
  test.each<[string, DaemonObservation, string]>([
    ['nothing is staged', at({ spec: layered('rendered-2', '2', { heldBy }) }), 'leaveAlone'],
    [
      'nothing is staged anew',
      { ...wanted([restart], { heldBy, policyDigest: 'sha256:new' }) },
      'leaveAlone',
    ],
    ['what is staged waits, as it does without', wanted([restart], { heldBy }), 'awaitGrant'],
    [
      'what was granted is applied, under the lease',
      wanted([restart], { heldBy, ...grant('Live', 'rendered-2', '2') }),
      'apply',
    ],
    [
      'no next boot is made',
      wanted([...reboot], { heldBy, nextBoot: { config: 'rendered-2', image: image('2') } }),
      'leaveAlone',
    ],
    [
      'an update under way is ended',
      at({ journal: journal('applying'), spec: layered('rendered-2', '2', { heldBy }) }),
      'applyAgain',
    ],
    ['registry CAs wait', at({ spec: layered('rendered-1', '1', { heldBy, ...registryCAs }) }), 'idle'],
    [
      'the kubelet CA does not: without it the node could not be given back',
      at({ spec: layered('rendered-1', '1', { heldBy, certificates: { kubeletCA: 'v' } }) }),
      'applyCertificate',
    ],
    [
      'a repair asks the lease itself',
      at({ repair: REPAIR, spec: layered('rendered-1', '1', { heldBy }) }),
      'repair',
    ],
  ])('%s', (_what, observation, step) => {
    expect(decide(observation).kind).toBe(step);
  });

  test('and says who has it', () => {
    expect(decide(at({ spec: layered('rendered-2', '2', { heldBy }) }))).toEqual({
      kind: 'leaveAlone',
      why: heldBy,
    });
  });

  test('certificates that waited for the lease are tried at once when the node is given back', () => {
    const waits = new Map([
      ['kubeletCA', { ...withheld, reason: 'LeaseHeld', under: 'rendered-1', heldBy }],
    ] as const);
    const certificates = { kubeletCA: 'v' };
    const spec = (more: object) => layered('rendered-1', '1', { certificates, ...more });
    expect(decide(at({ withheld: waits, spec: spec({ heldBy }) })).kind).toBe('idle');
    expect(decide(at({ withheld: waits, spec: spec({}) })).kind).toBe('applyCertificate');
  });
});

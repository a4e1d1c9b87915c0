import { describe, expect, it } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { aBuild, aSuccess, condition, image } from '../../test/fixtures/objects.ts';
import { type ImageKnowledge, type RollbackLabel, rollbackLabel } from './rollback-label.ts';

const CONFIG = 'rendered-worker-1';
const SHORT = 'its label has no transition from rendered-worker-2, which nodes run';
const first = aBuild('first', CONFIG, { policyDigest: 'sha256:p', status: aSuccess('1') });

/** A build that labels the image of the first again. */
function again(
  name: string,
  status: NonNullable<MachineOSBuild['status']>,
  more: { readonly at?: string; readonly policyDigest?: string } = {},
): MachineOSBuild {
  const build = aBuild(name, CONFIG, {
    policyDigest: 'sha256:p',
    at: '2026-02-01T00:00:00Z',
    ...more,
    status,
  });
  return { ...build, metadata: { ...build.metadata, annotations: { [annotations.relabels]: 'first' } } };
}

const relabelled = again('again', aSuccess('2', 'Relabel'));
const decide = (builds: readonly MachineOSBuild[], more: Partial<ImageKnowledge> = {}) =>
  rollbackLabel(image('1'), {
    builds,
    policyDigest: 'sha256:p',
    unlisted: (build) => (build.metadata.name === 'again' ? [] : ['rendered-worker-2']),
    isRecorded: ({ metadata }) => metadata.name === 'first',
    checkOf: () => undefined,
    ...more,
  });

describe('the label by which nodes are rolled back', () => {
  it.each<[string, readonly MachineOSBuild[], Partial<ImageKnowledge>, RollbackLabel]>([
    [
      'its own, where that lists what they run',
      [first],
      { unlisted: () => [] },
      { kind: 'found', image: image('1') },
    ],
    ['its own, where its build is gone', [], {}, { kind: 'found', image: image('1') }],
    [
      'the other one, once it is recorded',
      [first, relabelled],
      { isRecorded: () => true },
      { kind: 'found', image: image('2') },
    ],
    [
      'the other one, for as long as that suffices: nodes that have it keep it',
      [first, relabelled],
      { isRecorded: () => true, unlisted: () => [] },
      { kind: 'found', image: image('2') },
    ],
    [
      'one that the builder has yet to make',
      [first],
      {},
      { kind: 'follows', why: 'the builder labels it again' },
    ],
    [
      'one that is being made',
      [first, again('third', { conditions: [condition('Building')] })],
      {},
      { kind: 'follows', why: 'MachineOSBuild third labels it again' },
    ],
    [
      'one after those that fall short of what nodes run by now',
      [first, again('third', aSuccess('3', 'Relabel'))],
      {},
      { kind: 'follows', why: 'the builder labels it again' },
    ],
    [
      'one by the policies in force, whatever failed under others',
      [first, again('third', { conditions: [condition('Failed')] }, { policyDigest: 'sha256:before' })],
      {},
      { kind: 'follows', why: 'the builder labels it again' },
    ],
    [
      'one that has to be checked',
      [first, relabelled],
      {},
      {
        kind: 'follows',
        why: 'MachineOSBuild again labelled it again: it is being compared with what the MachineConfigs say',
        candidate: relabelled,
      },
    ],
    [
      'one that can not be read for now',
      [first, relabelled],
      { checkOf: () => ({ kind: 'unreadable', why: 'connection refused' }) },
      {
        kind: 'follows',
        why: 'MachineOSBuild again labelled it again: connection refused',
        candidate: relabelled,
      },
    ],
    [
      'its own by a reboot, where the other is refused',
      [first, relabelled],
      { checkOf: () => ({ kind: 'refused', why: 'its label is forged' }) },
      {
        kind: 'found',
        image: image('1'),
        reboots: `${SHORT}, and the image of MachineOSBuild again is refused: its label is forged`,
      },
    ],
    [
      'its own by a reboot, where the build of the other failed',
      [first, again('third', { conditions: [condition('Failed', 'True', 'the base is gone')] })],
      {},
      {
        kind: 'found',
        image: image('1'),
        reboots: `${SHORT}, and MachineOSBuild third, which labels it again, failed: the base is gone`,
      },
    ],
    [
      'its own by a reboot, where another version of Shale made another layer',
      [first, again('again', aSuccess('2', 'Append'))],
      { isRecorded: () => true },
      {
        kind: 'found',
        image: image('1'),
        reboots: `${SHORT}, and the content of MachineOSBuild again, which labels it again, is another`,
      },
    ],
    [
      'never that of an image on another base',
      [first, again('again', aSuccess('2', 'Relabel', 'other'))],
      { isRecorded: () => true },
      {
        kind: 'found',
        image: image('1'),
        reboots: `${SHORT}, and the content of MachineOSBuild again, which labels it again, is another`,
      },
    ],
  ])('is %s', (_what, builds, more, expected) => {
    expect(decide(builds, more)).toEqual(expected);
  });
});

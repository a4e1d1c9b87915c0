import { describe, expect, test } from 'vitest';
import { present } from '../../api/present.ts';
import { imageOf, observation, standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { newWork, resumedWork, writtenOver } from './disk-work.ts';

const before: Current = { ...standard('rendered-1'), baseImage: imageOf('0'), kernelArguments: ['quiet'] };
const next = standard('rendered-2');
const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-2', image: imageOf('2') };
const plan = { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'test' };
const entryOf = (coming: Current, written?: boolean): JournalEntryAt<'applying'> => ({
  version: 1,
  step: 'applying',
  plan,
  next: coming,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
  ...present({ written }),
});

describe('what the disk has once a config was written to it', () => {
  test('is the config, with what the deployment had before', () => {
    expect(writtenOver(before, next, imageOf('9'))).toEqual({
      ...before,
      config: 'rendered-2',
      rendered: next.rendered,
    });
  });

  test.each([
    ['that Shale had not configured', undefined],
    ['in layered mode', layered],
  ])('is the config alone on a node %s, on the image that is booted', (_what, current) => {
    const written = {
      version: 1,
      mode: 'Standard',
      config: 'rendered-2',
      rendered: next.rendered,
      kernelArguments: [],
    };
    expect(writtenOver(current, next, imageOf('9'))).toEqual({ ...written, baseImage: imageOf('9') });
    expect(writtenOver(current, next)).toEqual(written);
  });

  test('is what it had, where an image was to come', () => {
    expect(writtenOver(before, layered)).toBe(before);
    expect(writtenOver(undefined, layered)).toBeUndefined();
  });
});

describe('an update begins from', () => {
  /** @param journal the update that was under way before. */
  async function begins(
    current: Current | undefined,
    journal: JournalEntryAt<'applying'> | undefined,
    coming: Current,
  ) {
    const { context } = await stepUnderTest();
    const { current: onDisk } = newWork(
      context,
      entryOf(coming),
      observation({ current, journal, bootedImage: imageOf('9') }),
    );
    return onDisk;
  }

  test.each<
    [string, Current | undefined, JournalEntryAt<'applying'> | undefined, Current, Current | undefined]
  >([
    ['the record', before, undefined, next, before],
    ['the record, where nothing was written', before, entryOf(next), next, before],
    ['what was written over it', before, entryOf(next, true), next, writtenOver(before, next)],
    [
      'what the update before the last one has written over it',
      before,
      { ...entryOf(standard('rendered-3')), onDisk: next },
      standard('rendered-3'),
      writtenOver(before, next),
    ],
    [
      'what the update before the last one has brought of its image',
      before,
      { ...entryOf({ ...next, baseImage: imageOf('0') }), onDisk: layered },
      { ...next, baseImage: imageOf('0') },
      layered,
    ],
    [
      'what was written on a fresh node',
      undefined,
      entryOf(next, true),
      next,
      writtenOver(undefined, next, imageOf('9')),
    ],
    [
      'the image that was being applied',
      before,
      entryOf(layered),
      { ...next, baseImage: imageOf('0') },
      layered,
    ],
    ['the record, where no base is known to roll back to', before, entryOf(layered), next, before],
    ['the record of an image', layered, entryOf(layered), { ...next, baseImage: imageOf('0') }, layered],
    [
      'the record, where another image follows',
      before,
      entryOf(layered),
      { ...layered, image: imageOf('3') },
      before,
    ],
  ])('%s', async (_what, current, journal, coming, expected) => {
    expect(await begins(current, journal, coming)).toEqual(expected);
  });
});

test('what was written is on record before the update goes on', async () => {
  const { context } = await stepUnderTest();
  const work = newWork(context, entryOf(next), observation());
  expect(work.disk).toBe('AsRecorded');
  await work.onWritten?.();
  expect(await context.journal.read()).toMatchObject({ step: 'applying', written: true });
});

test('an update that was begun before takes nothing on the disk for granted', async () => {
  const { context } = await stepUnderTest();
  expect(resumedWork(context, entryOf(next), observation()).disk).toBe('Uncertain');
});

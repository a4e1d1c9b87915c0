import { describe, expect, test } from 'vitest';
import { present } from '../../api/present.ts';
import { imageOf, observation, standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { holderOf, newEntry, workOf, writtenOver } from './update-context.ts';

const before: Current = { ...standard('rendered-1'), baseImage: imageOf('0'), kernelArguments: ['quiet'] };
const next = standard('rendered-2');
const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-2', image: imageOf('2') };
const plan = { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'test' };
const entryOf = (coming: Current, written?: boolean): JournalEntryAt<'applying'> => ({
  ...{
    version: 1,
    step: 'applying',
    plan,
    next: coming,
    bootID: 'boot-1',
    startedAt: '2026-01-01T00:00:00.000Z',
  },
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
    return workOf(
      context,
      entryOf(coming),
      observation({ current, journal, bootedImage: imageOf('9') }),
      false,
    ).current;
  }

  test.each<
    [string, Current | undefined, JournalEntryAt<'applying'> | undefined, Current, Current | undefined]
  >([
    ['the record', before, undefined, next, before],
    ['the record, where nothing was written', before, entryOf(next), next, before],
    ['what was written over it', before, entryOf(next, true), next, writtenOver(before, next)],
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
    ['the record, where no base is known to go back to', before, entryOf(layered), next, before],
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

test('a new entry is of this boot, under the lease of who granted it', () => {
  const { spec } = observation();
  const granted = observation({ bootID: 'boot-7' });
  expect(newEntry({ plan, next }, granted)).toEqual({
    ...{ version: 1, step: 'applying', plan, next, bootID: 'boot-7', leaseHolder: 'shale-operator' },
    startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  });
  const { grant: _grant, ...ungranted } = spec;
  expect(holderOf(observation({ spec: ungranted }))).toBe('');
});

test('what was written, and what is being done, is known before it goes on', async () => {
  const { context, phases } = await stepUnderTest();
  const work = workOf(context, entryOf(next), observation(), true);
  expect(work.again).toBe(true);
  await work.afterWriting();
  expect(await context.journal.read()).toMatchObject({ step: 'applying', written: true });
  await work.beforeAction({ type: 'Restart', service: 'a.service' });
  expect(phases).toEqual([{ kind: 'applying', plan, doing: 'Running Restart(a.service)' }]);
});

import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { imageLabels } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { type Current, type LayeredCurrent, readCurrent, writeCurrent } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { readManagedPaths, writeManagedPaths } from '../records/managed-paths.ts';
import { correctCurrent, endUnhealthyTarget, fail, finish } from './end-update.ts';
import { byReboot } from './update.ts';

const layered: LayeredCurrent = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-2',
  image: imageOf('2'),
};
const plan = (more: Partial<UpdatePlan> = {}): UpdatePlan => ({
  config: 'rendered-2',
  staged: true,
  actions: [{ type: 'DaemonReload' }],
  causes: [],
  source: 'test',
  ...more,
});
const entry = (more: Partial<Pick<JournalEntry, 'plan' | 'next' | 'bootID'>> = {}): JournalEntry => ({
  version: 1,
  step: 'applying',
  plan: plan(),
  next: standard('rendered-2'),
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
  ...more,
});
const managed = new Map([['/etc/app.conf', ['sha256:1']]]);

/** @returns a node that is at this entry of its journal, with a record of managed paths. */
async function nodeAt(given: JournalEntry, booted: Partial<NodeDeployment> = {}) {
  const test = await stepUnderTest({
    backend: { status: async () => ({ booted: deployment('/booted', booted) }) },
  });
  await test.context.journal.write(given);
  await writeManagedPaths(test.root, managed);
  test.context.memory.prepared = {
    plan: given.plan,
    next: given.next,
    policyDigest: undefined,
    softRebootAllowed: false,
  };
  return test;
}

describe('an update that has succeeded', () => {
  test('live is recorded with its actions, and no longer prepared', async () => {
    const { context, root, events } = await nodeAt(entry());

    expect(await finish(context, entry(), observation())).toEqual({ kind: 'again' });

    expect(await readCurrent(root)).toEqual(standard('rendered-2'));
    expect(await context.journal.read()).toBeUndefined();
    expect(context.memory.prepared).toBeUndefined();
    expect(await readLastUpdate(root)).toMatchObject({
      config: 'rendered-2',
      actions: [{ type: 'DaemonReload' }],
      bootIDBefore: 'boot-1',
      bootIDAfter: 'boot-1',
      result: 'Succeeded',
    });
    expect(events).toEqual(['Running rendered-2 in standard mode without a reboot; actions: DaemonReload']);
    expect(await readManagedPaths(root)).toEqual(managed);
  });

  test.each([
    ['a layered image by a reboot', layered, 'boot-2', 0, 'after a reboot'],
    ['a config by a reboot', standard('rendered-2'), 'boot-2', 1, 'after a reboot'],
    ['a layered image live', layered, 'boot-1', 1, 'without a reboot'],
  ] as const)('of %s leaves what Shale manages in /etc', async (_name, next, bootID, left, how) => {
    const given = entry({ next, plan: plan({ image: imageOf('2') }) });
    const { context, root, events } = await nodeAt(given);

    await finish(context, given, observation({ bootID }));

    expect((await readManagedPaths(root)).size).toBe(left);
    expect(events).toEqual([expect.stringContaining(how)]);
    const record = await readLastUpdate(root);
    expect(record).toMatchObject({ image: imageOf('2'), bootIDBefore: 'boot-1', bootIDAfter: bootID });
    expect(record?.softReboot).toBeUndefined();
    expect(record?.message).toBeUndefined();
  });

  test('by a reboot because it could not be applied live keeps the reason', async () => {
    const given = entry({
      next: layered,
      plan: byReboot({ plan: plan(), next: layered }, 'no such unit').plan,
    });
    const { context, root } = await nodeAt(given);

    await finish(context, given, observation({ bootID: 'boot-2' }));

    expect(await readLastUpdate(root)).toMatchObject({ result: 'Succeeded', liveFailure: 'no such unit' });
  });

  test('by a soft reboot says so', async () => {
    const given = entry({ next: layered, bootID: 'kernel-1' });
    const { context, root, events } = await nodeAt(given);

    await finish(context, given, observation({ bootID: 'kernel-1+1' }));

    expect(await readLastUpdate(root)).toMatchObject({ softReboot: true });
    expect(events).toEqual([expect.stringContaining('after a soft reboot')]);
  });
});

test('an update that failed says why, and leaves the record of what runs', async () => {
  const before = standard('rendered-1');
  const { context, root, events } = await nodeAt(entry({ next: layered }));
  await writeCurrent(root, before);

  await fail(
    context,
    { entry: entry({ next: layered }), why: 'it booted another' },
    observation({ current: before }),
  );

  expect(await readCurrent(root)).toEqual(before);
  expect(await readLastUpdate(root)).toMatchObject({
    result: 'Failed',
    reason: 'UpdateFailed',
    message: 'it booted another',
  });
  expect(await context.journal.read()).toBeUndefined();
  expect(events).toEqual([`The update to rendered-2 in ${imageOf('2')} failed: it booted another`]);
});

test('an update that failed because another image was booted records that image', async () => {
  const given = entry({ next: layered });
  const labels = { [imageLabels.renderedConfig]: 'rendered-9' };
  const { context, root } = await nodeAt(given, { image: imageOf('9'), labels });
  const before: Current = { ...layered, config: 'rendered-1', image: imageOf('1') };
  await writeCurrent(root, before);
  await fail(context, { entry: given, why: 'it booted another' }, observation({ current: before }));
  expect(await readCurrent(root)).toEqual({ ...layered, config: 'rendered-9', image: imageOf('9') });
});

test('a target that is not healthy is what runs, and has failed', async () => {
  const { context, root, events } = await nodeAt(entry({ next: layered }));

  await endUnhealthyTarget(context, entry({ next: layered }), observation({ bootID: 'boot-2' }), 'no route');

  expect(await readCurrent(root)).toEqual(layered);
  expect(await readLastUpdate(root)).toMatchObject({
    result: 'Failed',
    reason: 'HealthCheckFailed',
    message: 'no route',
  });
  expect(await context.journal.read()).toBeUndefined();
  expect((await readManagedPaths(root)).size).toBe(0);
  expect(events).toEqual([expect.stringContaining('which is not healthy: no route')]);
});

describe('after a boot that nobody asked for', () => {
  const labels = {
    [imageLabels.renderedConfig]: 'rendered-7',
    [imageLabels.baseImage]: imageOf('0'),
    [imageLabels.stockImage]: imageOf('a'),
  };
  const onStock = { ...standard('rendered-1'), baseImage: imageOf('0') };
  const onSeventh: Current = {
    ...onStock,
    baseImage: imageOf('7'),
    rendered: { ...onStock.rendered, spec: { ...onStock.rendered.spec, osImageURL: imageOf('7') } },
  };
  const booted7: Current = {
    version: 1,
    mode: 'Layered',
    config: 'rendered-7',
    image: imageOf('7'),
    baseImage: imageOf('0'),
    stockImage: imageOf('a'),
  };

  test.each<[string, Current | undefined, Partial<NodeDeployment>, Current | undefined]>([
    ['the same image', layered, { image: imageOf('2'), labels }, layered],
    ['an image that is not known', layered, { labels }, layered],
    ['another layered image', layered, { image: imageOf('7'), labels }, booted7],
    ['an image without a config, and so a fresh node', layered, { image: imageOf('0') }, undefined],
    [
      'a layered image on a fresh node',
      undefined,
      { image: imageOf('7'), labels },
      expect.objectContaining({ image: imageOf('7') }),
    ],
    ['the stock image on a fresh node', undefined, { image: imageOf('0') }, undefined],
    ['the same OS image in standard mode', onStock, { image: imageOf('0') }, onStock],
    ['an OS image that is not known', onStock, {}, onStock],
    [
      'another OS image in standard mode',
      onStock,
      { image: imageOf('9') },
      { ...onStock, baseImage: imageOf('9') },
    ],
    [
      'the same OS image with other kernel arguments than were recorded',
      onStock,
      { image: imageOf('0'), addedKernelArguments: ['quiet'] },
      { ...onStock, kernelArguments: ['quiet'] },
    ],
    [
      'another OS image with the kernel arguments that were noted of it',
      onStock,
      { image: imageOf('9'), addedKernelArguments: [] },
      { ...onStock, baseImage: imageOf('9'), kernelArguments: [] },
    ],
    ['a layered image in standard mode', onStock, { image: imageOf('7'), labels }, booted7],
    [
      'a layered image that an earlier daemon took for an OS image',
      { ...onStock, baseImage: imageOf('7') },
      { image: imageOf('7'), labels },
      booted7,
    ],
    [
      'a layered image that the config names as its OS image',
      onSeventh,
      { image: imageOf('7'), labels },
      onSeventh,
    ],
  ])('the record says %s', async (_name, current, booted, expected) => {
    const { context, root } = await stepUnderTest({
      backend: { status: async () => ({ booted: deployment('/booted', booted) }) },
    });
    if (current !== undefined) await writeCurrent(root, current);

    await correctCurrent(context.ports, current, context.signal);

    expect(await readCurrent(root)).toEqual(expected);
  });

  test('a record that is right is not written again', async () => {
    const { context, root } = await stepUnderTest({
      backend: { status: async () => ({ booted: deployment('/booted', { image: imageOf('2') }) }) },
    });
    await mkdir(path.join(root, 'var/lib'), { recursive: true });

    await correctCurrent(context.ports, layered, context.signal);

    expect(await readCurrent(root)).toBeUndefined();
  });
});

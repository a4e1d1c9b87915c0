import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  type StepUnderTest,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { contentDigest, readTreeEntry } from '../files/tree-entry.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { type Current, readCurrent, writeCurrent } from '../records/current.ts';
import { writeLastUpdate } from '../records/last-update.ts';
import { writeManagedPaths } from '../records/managed-paths.ts';
import { takeUpBoot } from './ungranted-boot.ts';

const labels = { [imageLabels.renderedConfig]: 'rendered-7' };
const onStock = { ...standard('rendered-1'), baseImage: imageOf('0') };
const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-7', image: imageOf('7') };

/** @param hasApplied whether a file of another image is in /etc still, where it was applied live. */
async function nodeThatBooted(
  current: Current | undefined,
  booted: Partial<NodeDeployment>,
  hasApplied = false,
): Promise<StepUnderTest> {
  const step = await stepUnderTest({
    host: { bootID: async () => 'boot-2' },
    backend: { status: async () => ({ booted: deployment(step.root, booted) }) },
  });
  if (hasApplied) {
    const at = (name: string) => path.join(step.root, name);
    await mkdir(at('usr/etc'), { recursive: true });
    await writeFile(at('usr/etc/app.conf'), 'booted');
    await writeFile(at('etc/app.conf'), 'applied');
    const digest = contentDigest(await readTreeEntry(at('etc/app.conf')));
    await writeManagedPaths(step.root, new Map([['/etc/app.conf', [digest]]]));
  }
  if (current !== undefined) await writeCurrent(step.root, current);
  return step;
}

const updatedIn = (bootIDAfter: string) => ({
  config: 'rendered-1',
  actions: [],
  causes: [],
  source: 'test',
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:01:00.000Z',
  bootIDBefore: 'boot-0',
  bootIDAfter,
  result: 'Succeeded' as const,
});

test.each<[string, Current, Partial<NodeDeployment>, Current, string | undefined]>([
  ['a layered image', onStock, { image: imageOf('7'), labels }, layered, imageOf('7')],
  [
    'another OS image of standard mode',
    onStock,
    { image: imageOf('9') },
    { ...onStock, baseImage: imageOf('9') },
    undefined,
  ],
  [
    'other kernel arguments of Shale’s',
    onStock,
    { image: imageOf('0'), kernelArguments: ['rw', 'audit=0'], addedKernelArguments: ['audit=0'] },
    { ...onStock, kernelArguments: ['audit=0'] },
    undefined,
  ],
])(
  'a boot of %s that is in no journal is verified as an update, and the record is kept until then',
  async (...the) => {
    const [, current, booted, next, image] = the;
    const { context, root, events } = await nodeThatBooted(current, booted);
    await writeLastUpdate(root, updatedIn('boot-1'));

    await takeUpBoot(context);

    expect(await context.journal.read()).toMatchObject({
      step: 'rebooting',
      withoutGrant: true,
      next,
      bootID: 'boot-1',
      plan: { config: next.config, staged: false, actions: [{ type: 'Reboot' }] },
    });
    expect((await context.journal.read())?.plan.image).toBe(image);
    expect(await readCurrent(root)).toEqual(current);
    expect(events).toEqual([expect.stringContaining('without a grant')]);
  },
);

test('a boot of another image is reported with what was undone of a live apply, if anything was', async () => {
  for (const hasApplied of [false, true]) {
    const booted = { image: imageOf('9'), labels };
    const { context, root, events } = await nodeThatBooted(layered, booted, hasApplied);
    await takeUpBoot(context);
    const [message] = events;
    expect(message).toContain('verifying it as an update');
    expect(message?.includes('Undid')).toBe(hasApplied);
    if (!hasApplied) continue;
    expect(message).toContain('Undid what had been applied live: /etc/app.conf');
    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('booted');
  }
});

test('a boot whose former files can not be restored is looked at again', async () => {
  const { context } = await nodeThatBooted(layered, { image: imageOf('9'), labels }, true);
  const relabel = () => Promise.reject(new Error('no policy is loaded'));
  const failing = { ...context, ports: { ...context.ports, relabel } };
  await expect(takeUpBoot(failing)).rejects.toThrow('no policy is loaded');
  expect(await context.journal.read()).toBeUndefined();
});

test('a boot is verified also where an edit on the node keeps what had been applied live', async () => {
  const { context, root, events } = await nodeThatBooted(layered, { image: imageOf('9'), labels });
  const at = (name: string) => path.join(root, name);
  await mkdir(at('usr/etc'), { recursive: true });
  await writeFile(at('usr/etc/app.d'), 'a file in the booted image');
  await mkdir(at('etc/app.d'));
  const digest = contentDigest(await readTreeEntry(at('etc/app.d')));
  await writeManagedPaths(root, new Map([['/etc/app.d', [digest]]]));
  await writeFile(at('etc/app.d/mine'), 'edited');

  await takeUpBoot(context);

  expect(await context.journal.read()).toMatchObject({ step: 'rebooting', withoutGrant: true });
  expect(events).toEqual([expect.stringMatching(/verifying it as an update$/)]);
  expect(await readFile(at('etc/app.d/mine'), 'utf8')).toBe('edited');
});

test('a boot of other kernel arguments is told by these', async () => {
  const booted = { image: imageOf('0'), addedKernelArguments: ['audit=0', 'a=1'] };
  const { context, events } = await nodeThatBooted(onStock, booted);
  await takeUpBoot(context);
  expect(events).toEqual([
    'The node booted rendered-1 in standard mode with the kernel arguments audit=0 a=1 without a grant, instead of rendered-1 in standard mode with no kernel arguments of a config; verifying it as an update',
  ]);
});

test.each<[string, Current | undefined, Partial<NodeDeployment>, Current | undefined]>([
  [
    'kernel arguments that somebody else has set',
    onStock,
    { image: imageOf('0'), kernelArguments: ['rw', 'audit=0'] },
    onStock,
  ],
  ['what the record says', layered, { image: imageOf('7'), labels }, layered],
  ['an image of nobody', layered, { image: imageOf('9') }, undefined],
  [
    'the image that an earlier daemon took for one of standard mode',
    { ...onStock, baseImage: imageOf('7') },
    { image: imageOf('7'), labels },
    layered,
  ],
])('a boot of %s is nothing to verify', async (_what, current, booted, expected) => {
  const { context, root } = await nodeThatBooted(current, booted);
  await takeUpBoot(context);
  expect(await context.journal.read()).toBeUndefined();
  expect(await readCurrent(root)).toEqual(expected);
});

test('the image that a fresh node came with is verified, and nothing is held against it', async () => {
  const { context, root, events } = await nodeThatBooted(undefined, { image: imageOf('7'), labels });
  await takeUpBoot(context);
  const entry = await context.journal.read();
  expect(entry).toMatchObject({ step: 'rebooting', firstBoot: true, next: layered, plan: { actions: [] } });
  expect(entry).not.toHaveProperty('withoutGrant');
  expect(await readCurrent(root)).toBeUndefined();
  expect(events).toEqual([]);
});

test('a daemon that starts again in the boot of the last update looks no further', async () => {
  const { context, root } = await nodeThatBooted(onStock, { image: imageOf('7'), labels });
  await writeLastUpdate(root, updatedIn('boot-2'));
  await takeUpBoot(context);
  expect(await context.journal.read()).toBeUndefined();
});

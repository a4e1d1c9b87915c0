import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UpdateRecord } from '../api/machine-config-node.ts';
import { atTarget, CONFIG, labels } from '../test/fixtures/daemon-at-target.ts';
import { eventually, nodeObject, runLoop } from '../test/fixtures/daemon-loop.ts';
import { deployment, imageOf } from '../test/fixtures/step-context.ts';
import { hasWatchdog } from './host/boot-watchdog/install.ts';
import { watchdogPaths } from './host/boot-watchdog/watchdog-files.ts';
import { type Current, readCurrent, writeCurrent } from './records/current.ts';
import { type JournalEntry, openJournal } from './records/journal.ts';
import { writeLastUpdate } from './records/last-update.ts';

describe('a daemon that starts', () => {
  const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-2', image: imageOf('2') };
  const toImage = nodeObject({ configImage: { desiredImage: imageOf('2') }, imageSigningKeys: 'Disabled' });
  const record: UpdateRecord = {
    config: 'rendered-2',
    actions: [],
    causes: [],
    source: 'test',
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:00:00.000Z',
    bootIDBefore: 'boot-1',
    bootIDAfter: 'boot-1',
    result: 'Succeeded',
  };
  const arm = async (root: string) => {
    for (const name of [watchdogPaths.unit, watchdogPaths.script]) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), '');
    }
  };

  test('waits until the boot has settled', async () => {
    const settled = Promise.withResolvers<void>();
    const { steps } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      host: { bootSettled: () => settled.promise },
    });
    await Promise.resolve();
    expect(steps).toEqual([]);
    settled.resolve();
    await eventually(() => expect(steps).toEqual(['idle done']));
  });

  test('starts again what it could not do at its start', async () => {
    let tries = 0;
    const { steps, server } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      host: {
        bootSettled: async () => {
          tries += 1;
          if (tries === 1) throw new Error('the boot has not settled');
        },
      },
    });
    await eventually(() => expect(steps).toEqual(['observe failed', 'idle done']));
    expect(tries).toBe(2);
    expect(server.condition('NodeDegraded')).toContain('AsExpected');
  });

  test('corrects its record after a boot into something else', async () => {
    const { root, steps } = await runLoop({
      object: toImage,
      before: (place) => writeCurrent(place, layered),
      backend: {
        status: async () => ({ booted: deployment('/booted', { image: imageOf('7') }) }),
        fetch: async (image) => deployment('/fetched', { image, labels }),
        stage: async (image) => deployment('/staged', { image, labels }),
      },
    });
    await eventually(() => expect(steps[0]).toBe('prepare done'));
    expect(await readCurrent(root)).toBeUndefined();
  });

  test('believes its record in the boot in which it was written', async () => {
    const { root, steps } = await runLoop({
      object: toImage,
      before: async (place) => {
        await writeCurrent(place, layered);
        await writeLastUpdate(place, record);
      },
      backend: {
        status: async () => ({ booted: deployment('/booted', { image: imageOf('7') }) }),
        fetch: async (image) => deployment('/fetched', { image, labels }),
        stage: async (image) => deployment('/staged', { image, labels }),
      },
    });
    await eventually(() => expect(steps).toEqual(['idle done']));
    expect(await readCurrent(root)).toEqual(layered);
  });

  test('takes out a watchdog that no update needs', async () => {
    const { root, steps } = await runLoop({
      object: nodeObject(),
      before: async (place) => {
        await atTarget(place);
        await arm(place);
      },
    });
    await eventually(() => expect(steps).toEqual(['idle done']));
    expect(await hasWatchdog(root)).toBe(false);
  });

  const rebooting: JournalEntry = {
    version: 1,
    step: 'rebooting',
    plan: { config: 'rendered-2', staged: true, actions: [{ type: 'Reboot' }], causes: [], source: 'test' },
    next: CONFIG,
    bootID: 'boot-0',
    startedAt: '2026-01-01T00:00:00.000Z',
  };

  test('resumes the update of its journal, and takes over from the watchdog', async () => {
    const { root, steps, server } = await runLoop({
      object: nodeObject(),
      before: async (place) => {
        await openJournal(place).write(rebooting);
        await arm(place);
      },
      host: { softBootSince: async () => undefined },
    });
    await eventually(() => expect(steps).toEqual(['verify done', 'idle done']));
    expect(await readFile(path.join(root, watchdogPaths.alive), 'utf8')).toBe('');
    expect(server.status?.lastUpdate).toMatchObject({ config: 'rendered-2', result: 'Succeeded' });
    expect(await hasWatchdog(root)).toBe(false);
  });

  test('leaves the watchdog to do its work where its own journal can not be read', async () => {
    const { root, steps, server } = await runLoop({
      object: nodeObject(),
      before: async (place) => {
        await arm(place);
        await mkdir(path.join(place, 'var/lib/shale'), { recursive: true });
        await writeFile(path.join(place, 'var/lib/shale/journal.json'), '{');
      },
    });
    await eventually(() => expect(server.condition('NodeDegraded')).toContain('journal.json'));
    expect(steps[0]).toBe('observe failed');
    expect(await hasWatchdog(root)).toBe(true);
    await expect(readFile(path.join(root, watchdogPaths.alive))).rejects.toThrow('ENOENT');
  });
});

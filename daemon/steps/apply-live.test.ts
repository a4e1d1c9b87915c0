import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  deployment,
  LEASE_HOLDER,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { type Current, readCurrent } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { applyLiveUpdate, startLiveApply, TargetMismatch } from './apply-live.ts';
import { beIdle } from './idle.ts';
import type { Update } from './update.ts';

const update: Update = {
  plan: {
    config: 'rendered-2',
    staged: true,
    actions: [{ type: 'Restart', service: 'app.service' }],
    causes: [],
    source: 'test',
  },
  next: standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]),
};

const begun = (): JournalEntry => ({
  version: 1,
  step: 'applying',
  ...update,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
});

describe('a live apply', () => {
  test('ends once the services have restarted and the files are as the config has them', async () => {
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
    });

    expect(await startLiveApply(context, update, observation())).toEqual({ kind: 'again' });

    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
    expect(await readCurrent(root)).toMatchObject({ config: 'rendered-2' });
    expect(await context.journal.read()).toBeUndefined();
  });

  test('sets no kernel argument that was missing before, and the next look reports it', async () => {
    const { context, root, phases } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
      backend: {
        status: async () => ({ booted: deployment('/booted') }),
        cleanup: async () => undefined,
      },
    });
    const kernelArguments = ['quiet=1'];
    const current = { ...standard('rendered-1'), kernelArguments };
    const next = { ...update.next, kernelArguments } as Current;

    await startLiveApply(context, { ...update, next }, observation({ current }));
    expect(await readLastUpdate(root)).toMatchObject({ config: 'rendered-2', result: 'Succeeded' });
    await beIdle(context, observation({ current: next, kernelArguments: { entry: ['rw'] } }));

    expect(phases.at(-1)).toEqual({
      kind: 'drifted',
      why: expect.stringMatching(/^Kernel arguments differ from rendered-2: quiet=1 is missing\. /),
    });
  });

  test('needs a reboot where a service has changed what was applied', async () => {
    const { context, root, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: {
        restart: async () => writeFile(path.join(root, 'etc/app.conf'), 'the service has its own'),
      },
    });

    expect(await startLiveApply(context, update, observation())).toEqual({ kind: 'again' });

    expect(await readCurrent(root)).toBeUndefined();
    expect(await context.journal.read()).toMatchObject({
      step: 'applying',
      plan: { actions: [{ type: 'Reboot' }], source: expect.stringContaining('/etc/app.conf') },
    });
    expect(events).toEqual([expect.stringContaining('/etc/app.conf')]);
  });

  test('that failed before anything was changed has not begun', async () => {
    const { context, root } = await stepUnderTest({ leaseHolder: LEASE_HOLDER });
    await writeFile(path.join(root, 'etc/app.conf'), 'by hand');
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'old' }]);

    await expect(startLiveApply(context, update, observation({ current }))).rejects.toThrow('/etc/app.conf');

    expect(await context.journal.read()).toBeUndefined();
    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('by hand');
  });

  test('that was begun before stays begun when it fails again', async () => {
    const { context, root } = await stepUnderTest({ leaseHolder: LEASE_HOLDER });
    await rm(path.join(root, 'etc'), { recursive: true });
    await writeFile(path.join(root, 'etc'), 'no directory');
    const entry = begun();
    await context.journal.write(entry);

    await expect(applyLiveUpdate(context, entry, observation({ journal: entry }), true)).rejects.toThrow();

    expect(await context.journal.read()).toMatchObject({ step: 'applying' });
  });

  test('that was begun before writes over what it had written', async () => {
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
    });
    await writeFile(path.join(root, 'etc/app.conf'), 'half');
    const entry = begun();
    await context.journal.write(entry);
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'old' }]);

    await applyLiveUpdate(context, entry, observation({ current, journal: entry }), true);

    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
    expect(await context.journal.read()).toBeUndefined();
  });

  test('that the end of the daemon interrupts is neither over nor failed', async () => {
    const ending = new AbortController();
    const { context, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: {
        restart: async () => {
          ending.abort(new Error('ending'));
          throw new Error('interrupted');
        },
      },
      context: { signal: ending.signal },
    });

    await expect(startLiveApply(context, update, observation())).rejects.toThrow('ending');

    expect(await context.journal.read()).toMatchObject({
      step: 'applying',
      plan: { actions: [{ type: 'Restart', service: 'app.service' }] },
      written: true,
    });
    expect(events).toEqual([]);
  });

  test('reports each part of it', async () => {
    const { context, phases, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: () => Promise.reject(new Error('no such unit')) },
    });
    await startLiveApply(context, update, observation());
    expect(phases.map((phase) => 'doing' in phase && phase.doing)).toEqual([
      'Writing files',
      'Running Restart(app.service)',
    ]);
    expect(events).toEqual(['rendered-2 could not be applied live: no such unit; it needs a reboot']);
    expect(await context.journal.read()).toMatchObject({ written: true });
  });

  test('names at most five of the paths that differ', () => {
    const paths = ['/a', '/b', '/c', '/d', '/e', '/f', '/g'];
    expect(new TargetMismatch(paths.slice(0, 1)).message).toMatch(/: \/a$/);
    expect(new TargetMismatch(paths.slice(0, 5)).message).toMatch(/\/e$/);
    expect(new TargetMismatch(paths).message).toMatch(/\/e and 2 more$/);
  });
});

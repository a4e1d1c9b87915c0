import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  LEASE_HOLDER,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { forceFileIn, isForced } from '../content/drift/drift.ts';
import { contentDigest, readTreeEntry } from '../files/tree-entry.ts';
import { type Current, readCurrent, writeCurrent } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { readStatePaths, writeStatePaths } from '../records/managed-paths.ts';
import { resumeLive, startLive, TargetMismatch } from './apply-live.ts';
import { beIdle } from './idle.ts';
import { noMetrics } from './node-metrics.ts';
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

const begun = (): JournalEntryAt<'applying'> => ({
  version: 1,
  step: 'applying',
  ...update,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
});

describe('a live apply', () => {
  test('ends once the services have restarted and the files are as the config has them', async () => {
    const ended: string[] = [];
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
      context: {
        metrics: {
          ...noMetrics,
          applied: (part, _seconds, result) => void ended.push(`${part} ${result}`),
          updated: (way, result) => void ended.push(`${way} ${result}`),
        },
      },
    });

    expect(await startLive(context, update, observation())).toEqual({ kind: 'again' });

    expect(ended).toEqual(['content done', 'Restart done', 'live Succeeded']);
    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
    expect(await readCurrent(root)).toMatchObject({ config: 'rendered-2' });
    expect(await context.journal.read()).toBeUndefined();
  });

  test('of an image brings its /usr and /etc to the running root before services restart', async () => {
    const image = imageOf('2');
    const { rendered } = standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]);
    const done: string[] = [];
    const staged = await mkdtemp(path.join(tmpdir(), 'shale-staged-'));
    onTestFinished(() => rm(staged, { recursive: true }));
    const { context, root, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      host: { unlockUsr: async () => void done.push('unlock /usr') },
      services: {
        restart: async (unit) => {
          const applied = [await read('usr/lib/app'), await read('etc/app.conf')];
          done.push(`restart ${unit} with ${applied.join(' and ')}`);
        },
      },
      backend: {
        status: async () => ({ booted: deployment(root, { image: imageOf('1') }) }),
        stage: async (name) => deployment(staged, { image: name }),
        tool: async () => ({ name: 'ostree', installsPackages: false }),
        finalizeStaged: async () => {
          done.push('finalize');
          return deployment(staged, { image });
        },
      },
    });
    const read = (name: string) => readFile(path.join(root, name), 'utf8');
    const put = async (place: string, text: string) => {
      await mkdir(path.dirname(place), { recursive: true });
      await writeFile(place, text);
    };
    for (const tree of [root, staged]) {
      for (const name of ['usr/etc/hosts', 'etc/hosts']) await put(path.join(tree, name), 'localhost');
    }
    await put(path.join(root, 'usr/lib/app'), 'old');
    for (const name of ['usr/lib/app', 'usr/etc/app.conf']) await put(path.join(staged, name), 'new');
    await put(path.join(staged, nodePaths.imageConfig), JSON.stringify(rendered));
    const next: Current = { version: 1, mode: 'Layered', config: 'rendered-2', image };

    await startLive(context, { plan: { ...update.plan, image }, next }, observation());

    expect(events).toEqual([expect.stringContaining('without a reboot')]);
    expect(done).toEqual(['unlock /usr', 'restart app.service with new and new', 'finalize']);
    expect(await readCurrent(root)).toEqual(next);
  });

  test('of an image takes away what only the former config had outside of /etc and /usr', async () => {
    const staged = await mkdtemp(path.join(tmpdir(), 'shale-staged-'));
    onTestFinished(() => rm(staged, { recursive: true }));
    const { context, root, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      host: { unlockUsr: async () => undefined },
      services: { restart: async () => undefined },
      backend: {
        status: async () => ({ booted: deployment(root, { image: imageOf('1') }) }),
        stage: async (name) => deployment(staged, { image: name }),
        tool: async () => ({ name: 'bootc', installsPackages: false }),
      },
    });
    const put = async (place: string, text: string) => {
      await mkdir(path.dirname(place), { recursive: true });
      await writeFile(place, text);
    };
    const carried = { [root]: standard('rendered-1', [{ path: '/var/app/seed', content: 'old' }]) };
    carried[staged] = standard('rendered-2');
    for (const [tree, { rendered }] of Object.entries(carried)) {
      await put(path.join(tree, nodePaths.imageConfig), JSON.stringify(rendered));
      await mkdir(path.join(tree, 'usr/etc'), { recursive: true });
    }
    await mkdir(path.join(staged, 'etc'));
    await put(path.join(root, 'var/app/seed'), 'old');
    await put(path.join(root, 'var/app/admin'), 'mine');
    const layered = (digit: string, config: string): Current => ({
      version: 1,
      mode: 'Layered',
      config,
      image: imageOf(digit),
    });
    const current = layered('1', 'rendered-1');
    await writeCurrent(root, current);

    const target = { plan: { ...update.plan, image: imageOf('2') }, next: layered('2', 'rendered-2') };
    await startLive(context, target, observation({ current }));

    expect(events).toEqual([expect.stringContaining('without a reboot')]);
    expect(await readLastUpdate(root)).toMatchObject({ config: 'rendered-2', result: 'Succeeded' });
    expect(await readdir(path.join(root, 'var/app'))).toEqual(['admin']);
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

    await startLive(context, { ...update, next }, observation({ current }));
    expect(await readLastUpdate(root)).toMatchObject({ config: 'rendered-2', result: 'Succeeded' });
    await beIdle(context, observation({ current: next, kernelArguments: { entry: ['rw'] } }));

    expect(phases.at(-1)).toEqual({
      kind: 'drifted',
      reason: 'ConfigDrift',
      byHand: [],
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

    expect(await startLive(context, update, observation())).toEqual({ kind: 'again' });

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

    await expect(startLive(context, update, observation({ current }))).rejects.toThrow('/etc/app.conf');

    expect(await context.journal.read()).toBeUndefined();
    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('by hand');
  });

  test('in standard mode leaves what its write has put back, also where an image had the same', async () => {
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
    });
    await mkdir(path.join(root, 'opt'));
    await writeFile(path.join(root, 'opt/own'), 'mine');
    const digest = contentDigest(await readTreeEntry(path.join(root, 'opt/own')));
    await writeStatePaths(root, new Map([['/opt/own', [digest]]]));
    const next = standard('rendered-2', [{ path: '/var/app/seed', content: 'new' }]);
    await startLive(context, { ...update, next }, observation());
    expect(await readFile(path.join(root, 'opt/own'), 'utf8')).toBe('mine');
    expect([...((await readStatePaths(root)) ?? new Map()).keys()]).toEqual(['/var/app/seed']);
  });

  test('with the force file writes over what was changed by hand, once', async () => {
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
    });
    await writeFile(path.join(root, 'etc/app.conf'), 'by hand');
    await mkdir(path.dirname(forceFileIn(root)), { recursive: true });
    await writeFile(forceFileIn(root), '');
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'old' }]);

    await startLive(context, update, observation({ current }));

    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
    expect(await isForced(root)).toBe(false);
  });

  test('that was begun before stays begun when it fails again', async () => {
    const { context, root } = await stepUnderTest({ leaseHolder: LEASE_HOLDER });
    await rm(path.join(root, 'etc'), { recursive: true });
    await writeFile(path.join(root, 'etc'), 'no directory');
    const entry = begun();
    await context.journal.write(entry);

    await expect(resumeLive(context, entry, observation({ journal: entry }))).rejects.toThrow();

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

    await resumeLive(context, entry, observation({ current, journal: entry }));

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

    await expect(startLive(context, update, observation())).rejects.toThrow('ending');

    expect(await context.journal.read()).toMatchObject({
      step: 'applying',
      plan: { actions: [{ type: 'Restart', service: 'app.service' }] },
      written: true,
    });
    expect(events).toEqual([]);
  });

  test('reports each part of it', async () => {
    const applied: string[] = [];
    const { context, phases, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: () => Promise.reject(new Error('no such unit')) },
      context: {
        metrics: { ...noMetrics, applied: (part, _s, result) => void applied.push(`${part} ${result}`) },
      },
    });
    await startLive(context, update, observation());
    expect(applied).toEqual(['content done', 'Restart failed']);
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

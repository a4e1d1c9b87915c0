import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import {
  deployment,
  imageOf,
  LEASE_HOLDER,
  type NodeUnderTest,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { watchdogPaths } from '../host/boot-watchdog/watchdog-files.ts';
import type { OsBackend } from '../os/backend.ts';
import { type Current, type LayeredCurrent, readCurrent, writeCurrent } from '../records/current.ts';
import type { JournalEntry, JournalEntryAt } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { readManagedPaths, writeManagedPaths } from '../records/managed-paths.ts';
import { finishRollback, recordHostRollback, rollBack } from './roll-back.ts';

const onImage = (digit: string): LayeredCurrent => ({
  version: 1,
  mode: 'Layered',
  config: `rendered-${digit}`,
  image: imageOf(digit),
});
const entry = (
  next: Current,
  more: Partial<JournalEntryAt<'rollingBack'>> = {},
): JournalEntryAt<'rollingBack'> => ({
  version: 1,
  step: 'rollingBack',
  plan: {
    config: next.config,
    staged: true,
    actions: [{ type: 'DaemonReload' }],
    causes: [],
    source: 'test',
  },
  next,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
  leaseHolder: LEASE_HOLDER,
  failedBoot: 'boot-2',
  why: 'no route',
  ...more,
});
const mark = {
  deployment: 'new.0',
  bootID: 'boot-2',
  reason: 'DaemonNeverStarted',
  why: 'no daemon started',
} as const;

/** A node whose staged deployment is a directory of its own, and which goes down when it is asked to reboot. */
async function rebooting({ backend = {}, ...node }: NodeUnderTest = {}) {
  const down = new AbortController();
  const done: string[] = [];
  const test = await stepUnderTest({
    leaseHolder: LEASE_HOLDER,
    ...node,
    host: {
      reboot: async (reason) => {
        done.push(`reboot: ${reason}`);
        down.abort(new Error('the node went down'));
      },
    },
    backend: {
      rollback: async () => void done.push('rollback'),
      stage: async (image) => {
        done.push(`stage ${image}`);
        return staged(image);
      },
      finalizeStaged: async () => staged(undefined),
      status: async () => ({ booted: deployment('/booted', { image: imageOf('2') }) }),
      ...backend,
    },
    context: { signal: down.signal },
  });
  const stagedRoot = path.join(test.root, 'staged');
  const staged = (image: ReturnType<typeof imageOf> | undefined) =>
    deployment(stagedRoot, present({ image }));
  await mkdir(path.join(stagedRoot, 'etc'), { recursive: true });
  return {
    ...test,
    done,
    stagedRoot,
    statusWithStaged: async () => ({ booted: deployment('/booted'), staged: staged(undefined) }),
  };
}
const isThere = (place: string) =>
  access(place).then(
    () => true,
    () => false,
  );

describe('a node that rolls back', () => {
  test('boots the image of before, and reports why', async () => {
    const { context, done, phases, events } = await rebooting();

    await expect(
      rollBack(context, entry(onImage('2')), observation({ current: onImage('1') })),
    ).rejects.toThrow('aborted');

    expect(done).toEqual([
      `stage ${imageOf('1')}`,
      `reboot: shale: rolling back from rendered-2 in ${imageOf('2')}, which is not healthy`,
    ]);
    expect(phases).toEqual([
      {
        kind: 'rollingBack',
        plan: expect.objectContaining({ actions: [{ type: 'Reboot' }], source: 'rollback: no route' }),
        why: 'no route',
        reason: 'HealthCheckFailed',
      },
    ]);
    expect(events).toEqual([`Rebooting into what ran before rendered-2 in ${imageOf('2')}`]);
  });

  test('takes the watchdog out of the running root, whose /etc is merged into the next one', async () => {
    const { context, root } = await rebooting();
    const unit = path.join(root, watchdogPaths.unit);
    await mkdir(path.dirname(unit), { recursive: true });
    await writeFile(unit, '[Service]\n');

    await expect(
      rollBack(context, entry(onImage('2')), observation({ current: onImage('1') })),
    ).rejects.toThrow();

    expect(await isThere(unit)).toBe(false);
  });

  test('to no known image takes the previous deployment', async () => {
    const { context, done } = await rebooting();
    await expect(rollBack(context, entry(onImage('2')), observation())).rejects.toThrow('aborted');
    expect(done).toEqual(['rollback', expect.stringContaining('reboot')]);
  });

  test('to a node that Shale had not configured writes nothing into the previous deployment', async () => {
    const { context, done, stagedRoot, statusWithStaged } = await rebooting();
    Object.assign(context.ports.backend, { status: statusWithStaged });
    await expect(rollBack(context, entry(onImage('2')), observation())).rejects.toThrow('aborted');
    expect(done).toEqual(['rollback', expect.stringContaining('reboot')]);
    expect(await readdir(path.join(stagedRoot, 'etc'))).toEqual([]);
  });

  test('to standard mode on no known image writes its config into the previous deployment', async () => {
    const backend: Partial<OsBackend> = {};
    const { context, done, stagedRoot, statusWithStaged } = await rebooting({ backend });
    Object.assign(context.ports.backend, { status: statusWithStaged });
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'before' }]);

    await expect(rollBack(context, entry(onImage('2')), observation({ current }))).rejects.toThrow('aborted');

    expect(done[0]).toBe('rollback');
    expect(await readFile(path.join(stagedRoot, 'etc/app.conf'), 'utf8')).toBe('before');
  });

  test('to standard mode has nothing to write where no deployment is staged', async () => {
    const { context, done, root } = await rebooting();
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'before' }]);
    await expect(rollBack(context, entry(onImage('2')), observation({ current }))).rejects.toThrow('aborted');
    expect(done).toEqual(['rollback', expect.stringContaining('reboot')]);
    expect(await isThere(path.join(root, 'etc/app.conf'))).toBe(false);
  });

  test('after the host did it undoes the files that standard mode left', async () => {
    const { context, done, root } = await rebooting();
    const before = standard('rendered-1', [{ path: '/etc/app.conf', content: 'before' }]);
    const next = standard('rendered-2', [
      { path: '/etc/app.conf', content: 'after' },
      { path: '/etc/new.conf', content: 'new' },
    ]);
    await writeFile(path.join(root, 'etc/app.conf'), 'after');
    await writeFile(path.join(root, 'etc/new.conf'), 'new');

    await expect(
      rollBack(
        context,
        entry(next, { byHost: true, reason: 'DaemonNeverStarted' }),
        observation({ current: before }),
      ),
    ).rejects.toThrow('aborted');

    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('before');
    expect(await isThere(path.join(root, 'etc/new.conf'))).toBe(false);
    expect(done).toEqual([expect.stringContaining('reboot')]);
  });

  test('after the host did it has no deployment to make in layered mode', async () => {
    const { context, done, phases } = await rebooting();
    await expect(
      rollBack(
        context,
        entry(onImage('2'), { byHost: true, reason: 'KubeletNeverStarted' }),
        observation({ current: onImage('1') }),
      ),
    ).rejects.toThrow('aborted');
    expect(done).toEqual([expect.stringContaining('reboot')]);
    expect(phases).toEqual([expect.objectContaining({ reason: 'KubeletNeverStarted' })]);
  });
});

describe('a node whose host has rolled back by itself', () => {
  const before = standard('rendered-1', [{ path: '/etc/app.conf', content: 'before' }]);
  const next = standard('rendered-2', [{ path: '/etc/app.conf', content: 'after' }]);
  const verifying = (target: Current): JournalEntry => ({
    ...(({ failedBoot: _failed, why: _why, ...rest }) => rest)(entry(target)),
    step: 'rebooting',
  });

  test.each([
    ['what the target left has to be undone', 'after', 'boot-3'],
    ['nothing of the target is left', 'before', 'boot-2'],
    ['what is left is a change of somebody else', 'by hand', 'boot-2'],
  ])('reboots once more only where %s', async (_name, content, failedBoot) => {
    const { context, root, events } = await stepUnderTest();
    await writeFile(path.join(root, 'etc/app.conf'), content);
    await context.journal.write(verifying(next));

    const outcome = await recordHostRollback(
      context,
      { entry: verifying(next), mark },
      observation({ current: before, bootID: 'boot-3' }),
    );

    expect(outcome).toEqual({ kind: 'again' });
    expect(await context.journal.read()).toEqual({
      ...entry(next),
      failedBoot,
      reason: 'DaemonNeverStarted',
      why: 'no daemon started',
      byHost: true,
    });
    expect(events).toEqual(['no daemon started']);
  });

  test('keeps every fact of the update', async () => {
    const { context } = await stepUnderTest();
    const given = { ...verifying(next), firstBoot: true, withoutGrant: true, brought: true } as const;
    await context.journal.write(given);
    await recordHostRollback(
      context,
      { entry: given, mark },
      observation({ current: before, bootID: 'boot-3' }),
    );
    const { step: _before, ...facts } = given;
    expect(await context.journal.read()).toMatchObject(facts);
  });

  test.each([
    ['from an image', before, onImage('2')],
    ['to an image', onImage('1'), next],
  ])('%s has no files to undo', async (_name, current, target) => {
    const { context } = await stepUnderTest();
    await context.journal.write(verifying(target));
    await recordHostRollback(
      context,
      { entry: verifying(target), mark },
      observation({ current, bootID: 'boot-3' }),
    );
    expect(await context.journal.read()).toMatchObject({ failedBoot: 'boot-2' });
  });
});

describe('a node that runs again what it ran before', () => {
  const managed = new Map([['/etc/app.conf', ['sha256:1']]]);

  test.each([
    ['an image', onImage('1'), false, 0],
    ['an image that the host rolled back to', onImage('1'), true, 1],
    ['a config', standard('rendered-1'), false, 1],
  ])('which is %s ends the update as rolled back', async (_name, current, byHost, left) => {
    const { context, root, events } = await stepUnderTest({
      backend: { status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }) },
    });
    await writeManagedPaths(root, managed);
    await writeCurrent(root, current);
    const given = entry(onImage('2'), {
      reason: 'DaemonNeverStarted',
      ...(byHost ? { byHost: true } : {}),
    });
    await context.journal.write(given);

    expect(await finishRollback(context, given, observation({ current, bootID: 'boot-3' }))).toEqual({
      kind: 'again',
    });

    expect((await readManagedPaths(root)).size).toBe(left);
    expect(await context.journal.read()).toBeUndefined();
    expect(await readCurrent(root)).toMatchObject({ config: 'rendered-1' });
    expect(await readLastUpdate(root)).toMatchObject({
      config: 'rendered-2',
      result: 'RolledBack',
      reason: 'DaemonNeverStarted',
      message: 'no route',
      bootIDAfter: 'boot-3',
    });
    expect(events).toEqual([`Rolled back from rendered-2 in ${imageOf('2')}: no route`]);
  });

  test('records what it has booted, where that is not what ran before', async () => {
    const labels = { [imageLabels.renderedConfig]: 'rendered-9' };
    const { context, root } = await stepUnderTest({
      backend: { status: async () => ({ booted: deployment('/booted', { image: imageOf('9'), labels }) }) },
    });
    await writeCurrent(root, onImage('1'));
    const given = entry(onImage('2'));
    await context.journal.write(given);
    await finishRollback(context, given, observation({ current: onImage('1'), bootID: 'boot-3' }));
    expect(await readCurrent(root)).toEqual(onImage('9'));
    expect(await readLastUpdate(root)).toMatchObject({ result: 'RolledBack', reason: 'HealthCheckFailed' });
  });

  test('has the labels of its own policy again', async () => {
    const relabelled: string[] = [];
    const { context } = await stepUnderTest({
      backend: { status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }) },
      ports: {
        wrongLabels: async (names) => names.map((name) => ({ name, wanted: 'etc_t' })),
        relabel: async (_root, names) => void relabelled.push(...names),
      },
    });
    const current = standard('rendered-1', [{ path: '/etc/app.conf', content: 'old' }]);
    await writeCurrent(context.ports.host.root, current);
    const given = entry(onImage('2'));
    await context.journal.write(given);
    await finishRollback(context, given, observation({ current, bootID: 'boot-3' }));
    expect(relabelled).toEqual(['/etc/app.conf']);
  });
});

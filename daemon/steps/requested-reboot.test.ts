import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir, uptime } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { current } from '../../test/fixtures/settled-node.ts';
import { observation, standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { awaitReboot, rebootRequestedBy, rebootUpdate } from './requested-reboot.ts';
import { targetOf } from './update.ts';

const NOW = { bootID: 'boot-1', since: undefined };
const request = { bootID: 'boot-1', by: 'ann', reason: '', at: '' };

async function hostRoot(): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-sentinel-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'run'));
  return root;
}

describe('a person requests a reboot', () => {
  test.each([
    ['of this boot', request, 'ann requested a reboot'],
    ['with a reason', { ...request, reason: 'new memory' }, 'ann requested a reboot: new memory'],
    ['without a name', { ...request, by: '' }, 'somebody requested a reboot'],
    ['of a boot before', { ...request, bootID: 'boot-0' }, undefined],
    ['not at all', undefined, undefined],
  ])('%s', async (_, asked, why) => {
    const requests = { request: asked, sentinel: undefined };
    expect(await rebootRequestedBy(await hostRoot(), requests, NOW)).toBe(why);
  });
});

describe('a file requests a reboot', () => {
  const sentinel = '/var/run/reboot-required';
  const asks = (root: string, since?: string) =>
    rebootRequestedBy(root, { request: undefined, sentinel }, { bootID: 'boot-1', since });

  test('once it appears, at the place that /var/run leads to', async () => {
    const root = await hostRoot();
    expect(await asks(root)).toBeUndefined();
    await writeFile(path.join(root, 'run/reboot-required'), '');
    expect(await asks(root)).toBe('/var/run/reboot-required exists');
    expect(await rebootRequestedBy(root, { request: undefined, sentinel: undefined }, NOW)).toBeUndefined();
  });

  test('not again where it outlives the reboot', async () => {
    const root = await hostRoot();
    await writeFile(path.join(root, 'run/reboot-required'), '');
    expect(await asks(root, new Date(Date.now() + 60_000).toISOString())).toBeUndefined();
  });

  test('not where it is older than the boot: its times can be set, so the later one counts', async () => {
    const root = await hostRoot();
    const file = path.join(root, 'run/reboot-required');
    await writeFile(file, '');
    const before = Date.now() / 1000 - uptime() - 60;
    await utimes(file, before, before);
    expect(await asks(root)).toBe('/var/run/reboot-required exists');
  });
});

describe('until the reboot is granted', () => {
  const update = rebootUpdate(targetOf(observation({ current }).spec), current, 'ann requested a reboot');

  test('the node reports a plan to reboot into what it runs', async () => {
    const { context, phases } = await stepUnderTest();
    await awaitReboot(context, update, observation({ current }));
    expect(phases).toEqual([
      {
        kind: 'waiting',
        plan: {
          ...update.plan,
          staged: true,
          actions: [{ type: 'Reboot' }],
          source: 'ann requested a reboot',
        },
        why: 'Waiting for permission to reboot: ann requested a reboot',
      },
    ]);
    expect(update.plan.requested).toBe(true);
    expect(update.next).toBe(current);
  });

  test('what was changed by hand is reported instead: nothing is to be drained for it', async () => {
    const { context, phases } = await stepUnderTest();
    const changed = standard('rendered-1', [{ path: '/etc/app.conf', content: 'x' }]);
    await awaitReboot(context, update, observation({ current: changed }));
    expect(phases).toMatchObject([
      {
        kind: 'drifted',
        reason: 'ConfigDrift',
        why: expect.stringMatching(/app\.conf.*; the requested reboot waits/s),
      },
    ]);
  });
});

import { describe, expect, test } from 'vitest';
import { image, into, powered } from '../../test/fixtures/powered-node.ts';
import { imageOf, type NodeUnderTest, observation } from '../../test/fixtures/step-context.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { rebootInto, requestReboot } from '../steps/reboot.ts';

describe('a soft reboot', () => {
  const since = (ms: number) => new Date(Date.now() - ms).toISOString();
  const entry = (rebootingSince: string): JournalEntryAt<'rebooting'> => ({
    version: 1,
    step: 'rebooting',
    ...into(image, { softReboot: true }),
    bootID: 'boot-1',
    startedAt: '2026-01-01T00:00:00.000Z',
    rebootingSince,
  });

  test('is prepared and asked for', async () => {
    const softly = new AbortController();
    const done: string[] = [];
    const {
      context,
      done: asked,
      events,
    } = await powered({
      host: {
        rebootSoftly: async (reason) => {
          done.push(reason);
          softly.abort();
        },
      },
      context: { signal: softly.signal },
    });
    await expect(rebootInto(context, into(image, { softReboot: true }), observation())).rejects.toThrow(
      'aborted',
    );
    expect(asked.at(-1)).toBe('prepare soft reboot');
    expect(done).toEqual([`shale: update to rendered-2 in ${imageOf('2')}`]);
    expect(events).toEqual([expect.stringContaining('Soft-rebooting into')]);
    expect(await context.journal.read()).toMatchObject({ plan: { softReboot: true } });
  });

  test.each<[string, NodeUnderTest, string, string]>([
    ['its time is over', {}, since(60_000), 'the soft reboot did not happen within 60 s'],
    [
      'it booted something else',
      { host: { bootID: async () => 'boot-1+1' } },
      since(0),
      'the soft reboot did not boot the target',
    ],
    [
      'the tool refuses',
      { backend: { prepareSoftReboot: () => Promise.reject(new Error('another kernel')) } },
      since(0),
      'another kernel',
    ],
    [
      'it does not come in what is left of its time',
      { host: { rebootSoftly: async () => undefined }, context: { softRebootLimitMs: 20 } },
      since(0),
      'the soft reboot did not happen within 0.02 s',
    ],
  ])('becomes a full one where %s', async (_name, node, rebootingSince, why) => {
    const { context, done, events } = await powered(node);
    await context.journal.write(entry(rebootingSince));

    await expect(requestReboot(context, entry(rebootingSince))).rejects.toThrow('aborted');

    expect(done.at(-1)).toContain('reboot: shale: update to rendered-2');
    expect(events).toEqual([
      expect.stringContaining(`Rebooting fully into rendered-2 in ${imageOf('2')}: ${why}`),
    ]);
    const journal = await context.journal.read();
    expect(journal?.plan.softReboot).toBeUndefined();
    expect(journal?.plan.source).toContain(why);
  });

  test('that fails because the daemon ends is no failure', async () => {
    const ending = new AbortController();
    const { context, done, events } = await powered({
      host: {
        rebootSoftly: async () => {
          ending.abort();
          throw new Error('interrupted');
        },
      },
      context: { signal: ending.signal },
    });
    await context.journal.write(entry(since(0)));
    await expect(requestReboot(context, entry(since(0)))).rejects.toThrow('aborted');
    expect(events).toEqual([]);
    expect(done).toEqual(['prepare soft reboot']);
  });
});

const rebooting: JournalEntryAt<'rebooting'> = {
  version: 1,
  step: 'rebooting',
  ...into(image),
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
};

test('what was not asked to be soft is a full reboot, and is asked for with its reason', async () => {
  const { context, done } = await powered();
  await expect(requestReboot(context, rebooting, 'because')).rejects.toThrow('aborted');
  expect(done).toEqual(['reboot: because']);
  expect(await context.journal.read()).toEqual({ ...rebooting, rebootRequests: 1 });
  await expect(requestReboot(context, { ...rebooting, rebootRequests: 1 })).rejects.toThrow('aborted');
  expect(await context.journal.read()).toEqual({ ...rebooting, rebootRequests: 2 });
});

test('a reboot that the host refuses is not counted as one that was asked for', async () => {
  const refused = new Error('Operation inhibited by "backup" (PID 7), reason is "it writes"');
  const { context } = await powered({ host: { reboot: () => Promise.reject(refused) } });
  const entry = { ...rebooting, rebootRequests: 2 };
  await context.journal.write(entry);
  await expect(requestReboot(context, entry)).rejects.toThrow(refused);
  expect(await context.journal.read()).toEqual(entry);
});

test('a request that the end of the daemon cuts off may have been one', async () => {
  const ending = new AbortController();
  const { context } = await powered({
    host: {
      reboot: async () => {
        ending.abort(new Error('SIGTERM'));
        ending.signal.throwIfAborted();
      },
    },
    context: { signal: ending.signal },
  });
  await expect(requestReboot(context, rebooting)).rejects.toThrow('SIGTERM');
  expect(await context.journal.read()).toEqual({ ...rebooting, rebootRequests: 1 });
});

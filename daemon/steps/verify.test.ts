import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import {
  begun,
  booted,
  failing,
  here,
  image,
  node,
  rebooting,
  spec,
  uptimeMs,
  verifying,
} from '../../test/fixtures/booted-node.ts';
import { imageOf, standard } from '../../test/fixtures/step-context.ts';
import { readCurrent } from '../records/current.ts';
import type { JournalEntry, JournalEntryAt } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { noMetrics } from './node-metrics.ts';
import type { Phase } from './phase.ts';
import { verifyBoot } from './verify.ts';

const { leaseHolder: _, ...unasked } = rebooting;

describe('a node that has booted its target', () => {
  test('ends the update once it is healthy', async () => {
    const { context, root, phases, ran } = await booted();
    await context.journal.write(rebooting);

    expect(await verifyBoot(context, rebooting, here)).toEqual({ kind: 'again' });

    expect(await readCurrent(root)).toEqual(image);
    expect(await readLastUpdate(root)).toMatchObject({ result: 'Succeeded', bootIDAfter: 'boot-2' });
    expect(ran).toEqual(['10-net.sh']);
    expect(phases).toEqual([expect.objectContaining({ kind: 'verifying' })]);
  });

  test.each(['Standard', 'Layered'] as const)(
    'has not succeeded in %s mode while its files are not as they were rendered',
    async (mode) => {
      const { context, root } = await booted();
      const next = standard('rendered-2', [{ path: '/etc/app.conf', content: 'rendered' }]);
      await mkdir(path.dirname(path.join(root, nodePaths.imageConfig)), { recursive: true });
      await writeFile(path.join(root, nodePaths.imageConfig), JSON.stringify(next.rendered));
      await writeFile(path.join(root, 'etc/app.conf'), 'carried along');
      const entry: JournalEntry = { ...rebooting, brought: true, next: mode === 'Standard' ? next : image };
      await context.journal.write(entry);

      expect(await verifyBoot(context, entry, here)).toEqual({ kind: 'again' });

      expect(await readCurrent(root)).toEqual(entry.next);
      expect(await readLastUpdate(root)).toMatchObject({
        result: 'Failed',
        reason: 'UpdateIncomplete',
        message: expect.stringContaining('/etc/app.conf: has'),
      });
      expect(await context.journal.read()).toBeUndefined();
    },
  );

  test('has not succeeded while it was booted without its kernel arguments', async () => {
    const { context, root } = await booted();
    const entry: JournalEntry = {
      ...rebooting,
      next: { ...standard('rendered-2'), kernelArguments: ['quiet=1'] },
    };
    await context.journal.write(entry);

    await verifyBoot(context, entry, { ...here, kernelArguments: { entry: ['rw', 'mine'] } });

    expect(await readLastUpdate(root)).toMatchObject({
      result: 'Failed',
      reason: 'ConfigDrift',
      message: expect.stringContaining('quiet=1 is missing'),
    });
  });

  test.each<[string, JournalEntry, number]>([
    ['of an update', rebooting, 1],
    ['that nobody granted', { ...unasked, withoutGrant: true }, 0],
    ['that the node came with', { ...unasked, firstBoot: true }, 0],
    ['by somebody else into its target', { ...unasked, plan: { ...unasked.plan, nextBoot: true } }, 0],
    ['after the one that an update asked for', verifying(1_000, { bootID: 'boot-1' }), 0],
  ])('measures a reboot %s (%#)', async (_name, entry, times) => {
    const rebooted = vi.fn();
    const { context } = await booted({ context: { metrics: { ...noMetrics, rebooted } } });
    await context.journal.write(entry);
    await verifyBoot(context, entry, here);
    expect(rebooted).toHaveBeenCalledTimes(times);
  });

  test('waits for a check that fails, under the record of when it began', async () => {
    const { context, phases } = await booted({ ports: failing });
    await context.journal.write(rebooting);
    const before = uptimeMs();

    const outcome = await verifyBoot(context, rebooting, here);

    expect(outcome).toEqual({ kind: 'wait', ms: 2_000 });
    const entry = (await context.journal.read()) as JournalEntryAt<'verifying'>;
    expect(entry).toMatchObject({ ...begun, step: 'verifying', verifying: { bootID: 'boot-2', boots: 1 } });
    expect(entry.verifying.sinceMs).toBeGreaterThanOrEqual(before);
    expect(entry).not.toHaveProperty('rebootingSince');
    expect(phases.map((phase) => 'doing' in phase && phase.doing)).toEqual([
      expect.stringContaining('health checks'),
      'health check /etc/greenboot/check/required.d/10-net.sh failed: no route',
    ]);
  });

  test.each([
    [20_000, 5_000],
    [40_000, 10_000],
  ])('that is unhealthy for %i ms waits a quarter of that', async (elapsedMs, expected) => {
    const { context } = await booted({
      ports: failing,
      context: { healthLimits: { checksMs: 600_000, kubeletMs: 600_000 } },
    });
    const entry = verifying(elapsedMs);
    await context.journal.write(entry);

    const outcome = await verifyBoot(context, entry, here);

    expect(outcome.kind === 'wait' && outcome.ms).toBeGreaterThanOrEqual(expected);
    expect(outcome.kind === 'wait' && outcome.ms).toBeLessThan(15_000);
    expect(await context.journal.read()).toEqual(entry);
  });

  test('waits no longer than 15 s between two looks', async () => {
    const { context } = await booted({
      ports: failing,
      context: { healthLimits: { checksMs: 600_000, kubeletMs: 600_000 } },
    });
    const entry = verifying(300_000);
    await context.journal.write(entry);
    expect(await verifyBoot(context, entry, here)).toEqual({ kind: 'wait', ms: 15_000 });
  });

  test.each([
    ['what is left of the time', 300_000, 250_000, 300_000],
    ['10 s at least', 595_000, 10_000, 10_000],
  ])('gives a check %s', async (_name, elapsedMs, least, most) => {
    const { context, limits } = await booted({
      context: { healthLimits: { checksMs: 600_000, kubeletMs: 600_000 } },
    });
    const entry = verifying(elapsedMs);
    await context.journal.write(entry);
    await verifyBoot(context, entry, here);
    expect(limits).toHaveLength(1);
    expect(limits[0]).toBeGreaterThanOrEqual(least);
    expect(limits[0]).toBeLessThanOrEqual(most);
  });

  test('reports the check that fails, what it printed, and how long it may', async () => {
    const { context, phases } = await booted({
      ports: failing,
      context: { healthLimits: { checksMs: 600_000, kubeletMs: 600_000 } },
    });
    const entry = verifying(200_000);
    await context.journal.write(entry);
    await verifyBoot(context, entry, here);
    const reported = phases.at(-1) as Extract<Phase, { kind: 'verifying' }>;
    expect(reported.failed).toEqual({
      check: expect.stringContaining('10-net'),
      output: expect.stringContaining('no route'),
    });
    expect(reported.leftMs).toBeGreaterThan(395_000);
    expect(reported.leftMs).toBeLessThanOrEqual(400_000);
  });

  test('rolls back when a check has failed for its time', async () => {
    const { context, events } = await booted({ ports: failing });
    const entry = verifying(60_000);
    await context.journal.write(entry);

    expect(await verifyBoot(context, entry, here)).toEqual({ kind: 'again' });

    expect(await context.journal.read()).toMatchObject({
      ...begun,
      step: 'rollingBack',
      failedBoot: 'boot-2',
      why: expect.stringContaining('no route'),
    });
    expect(events).toEqual([expect.stringContaining('no route')]);
  });

  test('ends the update where a newer target is there to go on to', async () => {
    const { context, root } = await booted({ ports: failing });
    const entry = verifying(60_000);
    await context.journal.write(entry);
    const newer = { ...here, spec: { ...here.spec, configVersion: { desired: 'rendered-3' } } };

    await verifyBoot(context, entry, newer);

    expect(await context.journal.read()).toBeUndefined();
    expect(await readCurrent(root)).toEqual(image);
    expect(await readLastUpdate(root)).toMatchObject({ result: 'Failed' });
  });

  test('ends the update where there is no other deployment to roll back to', async () => {
    const { context, root } = await booted({ ports: failing });
    const { image: _image, ...plan } = begun.plan;
    const entry = { ...verifying(60_000), plan, next: standard('rendered-2') };
    await context.journal.write(entry);

    await verifyBoot(context, entry, { ...here, spec, bootedImage: undefined });

    expect(await context.journal.read()).toBeUndefined();
    expect(await readLastUpdate(root)).toMatchObject({ result: 'Failed' });
  });

  test('rolls back from kernel arguments that nobody asked for, whatever config is the target', async () => {
    const { context } = await booted({ ports: failing });
    const { image: _image, ...plan } = begun.plan;
    const current = { ...standard('rendered-1'), baseImage: imageOf('2') };
    const entry = {
      ...verifying(60_000),
      withoutGrant: true as const,
      plan: { ...plan, config: 'rendered-1' },
      next: { ...current, kernelArguments: ['audit=0'] },
    };
    await context.journal.write(entry);

    await verifyBoot(context, entry, { ...here, spec, current });

    expect(await context.journal.read()).toMatchObject({ step: 'rollingBack', withoutGrant: true });
  });

  test('rolls back from files alone, where the update restored a kernel argument', async () => {
    const { context } = await booted({ ports: failing });
    const { image: _image, ...plan } = begun.plan;
    const onImage = { baseImage: imageOf('2') };
    const next = { ...standard('rendered-2'), ...onImage, kernelArguments: ['quiet'] };
    const entry = { ...verifying(60_000), plan, next };
    await context.journal.write(entry);

    await verifyBoot(context, entry, { ...here, spec, current: { ...standard('rendered-1'), ...onImage } });

    expect(await context.journal.read()).toMatchObject({ step: 'rollingBack', next });
  });

  test('counts another boot, and begins its time again', async () => {
    const { context } = await booted({ ports: failing });
    const entry = verifying(59_000);
    await context.journal.write(entry);

    expect(await verifyBoot(context, entry, { ...here, bootID: 'boot-3' })).toMatchObject({ kind: 'wait' });

    expect(await context.journal.read()).toMatchObject({ verifying: { bootID: 'boot-3', boots: 2 } });
  });

  test('that goes down again and again runs no check, and rolls back', async () => {
    const { context, ran } = await booted();
    const entry = verifying(1_000, { boots: 3 });
    await context.journal.write(entry);

    await verifyBoot(context, entry, { ...here, bootID: 'boot-3' });

    expect(ran).toEqual([]);
    expect(await context.journal.read()).toMatchObject({
      step: 'rollingBack',
      why: expect.stringContaining('went down 3 times'),
    });
  });

  test('runs its checks in the last boot that it is given', async () => {
    const { context, ran } = await booted();
    const entry = verifying(1_000, { boots: 2 });
    await context.journal.write(entry);
    await verifyBoot(context, entry, { ...here, bootID: 'boot-3' });
    expect(ran).toHaveLength(1);
  });

  test('runs no check again that has passed in this boot, while it waits for the kubelet', async () => {
    let ready = node('False');
    const { context, ran } = await booted({ objects: (kind) => (kind === 'Node' ? ready : undefined) });
    await context.journal.write(rebooting);

    expect(await verifyBoot(context, rebooting, here)).toMatchObject({ kind: 'wait' });
    const entry = (await context.journal.read()) as JournalEntry;
    ready = node('True');
    expect(await verifyBoot(context, entry, here)).toEqual({ kind: 'again' });

    expect(ran).toHaveLength(1);
    expect(context.memory.checkedBoot).toBe('boot-2');
  });

  test('runs the checks up to the first that fails', async () => {
    const ran: string[] = [];
    const { context } = await booted({
      checks: ['required.d/10-net', 'required.d/20-disk', 'required.d/30-time'],
      ports: {
        runCheck: async ({ place }) => {
          ran.push(path.basename(place));
          return ran.length === 2 ? { passed: false, why: 'failed' } : { passed: true };
        },
      },
    });
    await context.journal.write(rebooting);
    await verifyBoot(context, rebooting, here);
    expect(ran).toEqual(['10-net.sh', '20-disk.sh']);
    expect(context.memory.checkedBoot).toBeUndefined();
  });

  test('reports a check that is only wanted, and is updated all the same', async () => {
    const { context, root, events } = await booted({
      checks: ['wanted.d/10-ntp', 'wanted.d/20-dns'],
      ports: {
        runCheck: async ({ place }) =>
          place.endsWith('10-ntp.sh') ? { passed: false, why: 'failed: no server' } : { passed: true },
      },
    });
    await context.journal.write(rebooting);
    await verifyBoot(context, rebooting, here);
    expect(events).toEqual([
      'Health check /etc/greenboot/check/wanted.d/10-ntp.sh failed: no server',
      expect.stringContaining('after a reboot'),
    ]);
    expect(await readLastUpdate(root)).toMatchObject({ result: 'Succeeded' });
  });
});

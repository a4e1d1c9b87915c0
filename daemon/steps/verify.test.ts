import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  type NodeUnderTest,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import { readCurrent } from '../records/current.ts';
import type { JournalEntry, JournalEntryAt } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { noMetrics } from './node-metrics.ts';
import { recheck, verifyBoot } from './verify.ts';

const image: Current = { version: 1, mode: 'Layered', config: 'rendered-2', image: imageOf('2') };
const begun: Pick<JournalEntry, 'version' | 'plan' | 'next' | 'bootID' | 'startedAt' | 'leaseHolder'> = {
  version: 1,
  plan: {
    config: 'rendered-2',
    image: imageOf('2'),
    staged: true,
    actions: [{ type: 'Reboot' }],
    causes: [],
    source: 'test',
  },
  next: image,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
  leaseHolder: 'shale-operator',
};
const rebooting: JournalEntry = { ...begun, step: 'rebooting', rebootingSince: '2026-01-01T00:00:01.000Z' };
const uptimeMs = () => uptime() * 1000;
const verifying = (elapsedMs: number, more: Partial<JournalEntryAt<'verifying'>['verifying']> = {}) =>
  ({
    ...begun,
    step: 'verifying',
    verifying: { bootID: 'boot-2', sinceMs: uptimeMs() - elapsedMs, boots: 1, ...more },
  }) satisfies JournalEntry;
const { spec } = observation();
const here = observation({
  bootID: 'boot-2',
  bootedImage: imageOf('2'),
  current: standard('rendered-1'),
  spec: { ...spec, configImage: { desiredImage: imageOf('2') } },
});

/** A node that has booted the target, with one required check and one that is only wanted. */
async function booted({
  checks = ['required.d/10-net'],
  ...node
}: NodeUnderTest & { readonly checks?: readonly string[] } = {}) {
  const ran: string[] = [];
  const limits: number[] = [];
  const test = await stepUnderTest({
    ...node,
    backend: { status: async () => ({ booted: deployment('/booted', { image: imageOf('2') }) }) },
    host: { softBootSince: async () => undefined },
    ports: {
      runCheck: async (program, { limitMs }) => {
        ran.push(path.basename(program.place));
        limits.push(limitMs);
        return { passed: true };
      },
      ...node.ports,
    },
  });
  for (const check of checks) {
    const place = path.join(test.root, 'etc/greenboot/check', `${check}.sh`);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, '');
    await chmod(place, 0o755);
  }
  return { ...test, ran, limits };
}
const failing: NodeUnderTest['ports'] = {
  runCheck: async () => ({ passed: false, why: 'failed: no route' }),
};
const node = (status: 'True' | 'False', bootID = 'boot-2') => ({
  status: { nodeInfo: { bootID }, conditions: [{ type: 'Ready', status, message: 'not yet' }] },
});

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
      const entry: JournalEntry = { ...rebooting, next: mode === 'Standard' ? next : image };
      await context.journal.write(entry);

      expect(await verifyBoot(context, entry, here)).toEqual({ kind: 'again' });

      expect(await readCurrent(root)).toEqual(entry.next);
      expect(await readLastUpdate(root)).toMatchObject({
        result: 'Failed',
        reason: 'ConfigDrift',
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
    ['that nobody granted', { ...rebooting, withoutGrant: true }, 0],
    ['that the node came with', { ...rebooting, firstBoot: true }, 0],
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
    expect(entry.rebootingSince).toBeUndefined();
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

  test('ends the update where there is no other deployment to go back to', async () => {
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

describe('a node that runs a target that was not healthy', () => {
  const failed: UpdateRecord = {
    config: 'rendered-2',
    actions: [],
    causes: [],
    source: 'test',
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:00:00.000Z',
    bootIDBefore: 'boot-1',
    bootIDAfter: 'boot-2',
    result: 'Failed',
    message: 'no route',
  };
  const after = { ...here, lastUpdate: failed };

  test('has succeeded once its checks pass', async () => {
    const { context, root, events } = await booted();
    expect(await recheck(context, 'no route', after)).toEqual({ kind: 'again' });
    const { message: _message, ...record } = failed;
    expect(await readLastUpdate(root)).toEqual({ ...record, result: 'Succeeded' });
    expect(events).toEqual([expect.stringContaining('no route')]);
  });

  test.each([
    ['while a check fails', { ports: failing }],
    ['while the kubelet is not Ready', { objects: () => node('False') }],
    ['while the kubelet has not reported since the boot', { objects: () => node('True', 'boot-1') }],
  ])('stays degraded %s', async (_name, more) => {
    const { context, root, phases } = await booted(more);
    expect(await recheck(context, 'no route', after)).toEqual({ kind: 'wait', ms: 60_000 });
    expect(phases).toEqual([{ kind: 'degraded', why: 'no route', reason: 'HealthCheckFailed' }]);
    expect(await readLastUpdate(root)).toBeUndefined();
  });

  test('is healthy with a kubelet that is Ready', async () => {
    const { context } = await booted({ objects: () => node('True') });
    expect(await recheck(context, 'no route', after)).toEqual({ kind: 'again' });
  });

  test('stays degraded after its first boot for as long as no signature of its image is found', async () => {
    const { context, root, phases } = await booted();
    const first = { ...after, lastUpdate: { ...failed, firstBoot: true } as const };
    expect(await recheck(context, 'no route', first)).toEqual({ kind: 'wait', ms: 60_000 });
    expect(phases).toEqual([
      {
        kind: 'degraded',
        why: expect.stringMatching(/^no route; .*imageSigningKeys/),
        reason: 'HealthCheckFailed',
      },
    ]);
    expect(await readLastUpdate(root)).toBeUndefined();
    const free = { ...first, spec: { ...first.spec, imageSigningKeys: 'Disabled' } };
    expect(await recheck(context, 'no route', free)).toEqual({ kind: 'again' });
  });

  test('stays degraded where it is not known what the update was', async () => {
    const { context, phases } = await booted();
    expect(await recheck(context, 'no route', here)).toMatchObject({ kind: 'wait' });
    expect(phases).toHaveLength(1);
  });
});

import { describe, expect, test } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { booted, failing, here, node } from '../../test/fixtures/booted-node.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { recheck } from './verify.ts';

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
    reason: 'HealthCheckFailed',
    message: 'no route',
  };
  const after = { ...here, lastUpdate: failed };

  test('has succeeded once its checks pass', async () => {
    const { context, root, events } = await booted();
    expect(await recheck(context, 'no route', after)).toEqual({ kind: 'again' });
    const { message: _message, reason: _reason, ...record } = failed;
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

import { access } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Leases } from '../../api/kubernetes.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { LEASE_HOLDER, observation, standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { startLive } from './apply-live.ts';
import { formatAwaitedGrant, leaseObstacle, otherHolder, waitForLease } from './await-grant.ts';
import { rebootInto } from './reboot.ts';
import { rollBack } from './roll-back.ts';
import type { StepContext, StepOutcome } from './step-context.ts';
import type { Update } from './update.ts';

const next = standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]);
const plan = (actions: UpdatePlan['actions']): UpdatePlan => ({
  config: 'rendered-2',
  staged: true,
  actions,
  causes: [],
  source: 'test',
});
const live: Update = { plan: plan([]), next };
const byReboot: Update = { plan: plan([{ type: 'Reboot' }]), next };
const rollingBack: JournalEntryAt<'rollingBack'> = {
  version: 1,
  step: 'rollingBack',
  ...byReboot,
  bootID: 'boot-0',
  startedAt: '2026-01-01T00:00:00.000Z',
  leaseHolder: LEASE_HOLDER,
  failedBoot: 'boot-1',
  why: 'not healthy',
};
/** Every step that changes or reboots a node under a grant. */
const steps: readonly (readonly [string, (context: StepContext) => Promise<StepOutcome>])[] = [
  ['a live apply', (context) => startLive(context, live, observation())],
  ['a reboot', (context) => rebootInto(context, byReboot, observation())],
  ['a rollback', (context) => rollBack(context, rollingBack, observation())],
];

describe.each(steps)('%s', (_name, take) => {
  test.each([
    ['somebody else', 'node-maintenance'],
    ['nobody', ''],
    ['no lease', undefined],
  ])('leaves the node alone while its lease is held by %s', async (_who, leaseHolder) => {
    const { context, root, phases } = await stepUnderTest({ leaseHolder });

    const outcome = await take(context);

    expect(outcome).toEqual({ kind: 'wait', ms: 5_000 });
    expect(phases).toEqual([
      expect.objectContaining({ kind: 'waiting', why: expect.stringContaining(LEASE_HOLDER) }),
    ]);
    expect(await context.journal.read()).toBeUndefined();
    await expect(access(path.join(root, 'etc/app.conf'))).rejects.toThrow('ENOENT');
  });
});

describe('under a lease that the operator, which is away, does not renew', () => {
  const [renewed, seconds] = ['2026-01-01T00:00:00Z', 300];
  const later = (ms: number) => Date.parse(renewed) + ms;
  const heldBy = async (holderIdentity: string, now: number) => {
    const { context } = await stepUnderTest();
    const spec = { holderIdentity, renewTime: renewed, leaseDurationSeconds: seconds };
    const client = { ...context.client, find: async () => ({ spec }) as never };
    return leaseObstacle({ ...context, client }, LEASE_HOLDER, now);
  };

  test('a grant is good for twice as long as the lease lasts, as clocks differ, and no longer', async () => {
    expect(await heldBy(LEASE_HOLDER, later(2 * seconds * 1000))).toBeUndefined();
    expect(await heldBy(LEASE_HOLDER, later(2 * seconds * 1000 + 1))).toBe(
      `Waiting for the node lease: ${LEASE_HOLDER} granted the update, and has not renewed medik8s-leases/node-worker-1 since ${renewed}`,
    );
  });

  test.each(steps.slice(0, 2))('%s waits', async (_name, take) => {
    const { context } = await stepUnderTest({ leaseHolder: LEASE_HOLDER, leaseRenewed: renewed });
    expect(await take(context)).toEqual({ kind: 'wait', ms: 5_000 });
    expect(await context.journal.read()).toBeUndefined();
  });

  test('a rollback of an unhealthy node does not wait', async () => {
    const { context } = await stepUnderTest({ leaseHolder: LEASE_HOLDER, leaseRenewed: renewed });
    expect(
      await waitForLease(context, rollingBack, LEASE_HOLDER, observation(), { evenIfRunOut: true }),
    ).toBeUndefined();
  });
});

test('who holds the lease of a machine that was switched off is called that', async () => {
  const { context } = await stepUnderTest({ leaseHolder: 'shale-powered-off' });
  const words = 'shale-powered-off (the machine was switched off on request)';
  expect(await otherHolder(context, LEASE_HOLDER)).toBe(words);
  expect(await leaseObstacle(context, LEASE_HOLDER)).toContain(`is held by ${words}`);
});

test('changes the node once the lease is held by who granted it', async () => {
  const { context, root } = await stepUnderTest({ leaseHolder: LEASE_HOLDER });

  expect(await startLive(context, live, observation())).toEqual({ kind: 'again' });

  await expect(access(path.join(root, 'etc/app.conf'))).resolves.toBeUndefined();
});

test.each<[UpdatePlan['actions'], boolean, string]>([
  [[], false, 'apply the update, which needs no action'],
  [[{ type: 'Reboot' }], false, 'reboot'],
  [[{ type: 'Reboot' }], true, 'reboot the userspace'],
  [[{ type: 'Drain' }], false, 'drain the node'],
  [[{ type: 'DaemonReload' }], false, 'reload the units of systemd'],
  [[{ type: 'Reload', service: 'crio.service' }], false, 'reload crio.service'],
  [[{ type: 'Restart', service: 'crio.service' }], false, 'restart crio.service'],
  [
    [{ type: 'DaemonReload' }, { type: 'Restart', service: 'crio.service' }],
    false,
    'reload the units of systemd and restart crio.service',
  ],
  [
    [
      { type: 'Drain' },
      { type: 'DaemonReload' },
      { type: 'Reload', service: 'app.service' },
      { type: 'Restart', service: 'crio.service' },
    ],
    false,
    'drain the node, reload the units of systemd, reload app.service, and restart crio.service',
  ],
])('says what it waits for: %j', (actions, softReboot, expected) => {
  expect(formatAwaitedGrant({ actions, softReboot })).toBe(`Waiting for permission to ${expected}`);
});

describe('a daemon that', () => {
  const failing = async (error: Error) => {
    const node = await stepUnderTest();
    return {
      ...node,
      context: { ...node.context, client: { ...node.context.client, find: () => Promise.reject(error) } },
    };
  };

  test('may not read leases leaves them to the operator', async () => {
    const { context } = await failing(new ApiError(403, 'GET lease', {}));
    expect(await startLive(context, live, observation())).toEqual({ kind: 'again' });
    expect(await otherHolder(context, LEASE_HOLDER)).toBeUndefined();
  });

  test.each([
    ['gets another answer', new ApiError(404, 'GET leases', {})],
    ['gets none', new Error('refused')],
  ])('%s does not touch the node', async (_what, error) => {
    const { context } = await failing(error);
    await expect(startLive(context, live, observation())).rejects.toBe(error);
    await expect(otherHolder(context, LEASE_HOLDER)).rejects.toBe(error);
    expect(await context.journal.read()).toBeUndefined();
  });
});

describe('work that needs no grant', () => {
  const now = Date.parse('2026-01-01T00:10:00Z');
  const renewed = (renewTime: string, leaseDurationSeconds: number) => ({ renewTime, leaseDurationSeconds });

  test.each([
    ['nobody holds the lease', { holderIdentity: '' }, undefined],
    ['the holder of the grant holds it', { holderIdentity: LEASE_HOLDER }, undefined],
    ['somebody else holds it for ever', { holderIdentity: 'node-maintenance' }, 'node-maintenance'],
    [
      'somebody else holds it still',
      { holderIdentity: 'node-maintenance', ...renewed('2026-01-01T00:09:30Z', 60) },
      'node-maintenance',
    ],
    [
      'somebody else holds it up to this moment',
      { holderIdentity: 'node-maintenance', ...renewed('2026-01-01T00:09:00Z', 60) },
      'node-maintenance',
    ],
    [
      'somebody else held it for no time at all',
      { holderIdentity: 'node-maintenance', renewTime: '2026-01-01T00:09:59Z' },
      undefined,
    ],
    [
      "somebody else's has expired",
      { holderIdentity: 'node-maintenance', ...renewed('2026-01-01T00:08:00Z', 60) },
      undefined,
    ],
  ])('asks who holds the node: %s', async (_name, spec, expected) => {
    const { context } = await stepUnderTest();
    const { nodeName, leaseNamespace: namespace } = context.settings;
    const cluster = new MemoryCluster();
    const metadata = { name: `node-${nodeName}`, namespace };
    cluster.put(Leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    const client = cluster.client();
    expect(await otherHolder({ ...context, client }, LEASE_HOLDER, now)).toBe(expected);
  });
});

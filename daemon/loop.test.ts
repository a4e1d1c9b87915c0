import pino from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { PREPARE_REFUSED, type UpdateRecord } from '../api/machine-config-node.ts';
import { present } from '../api/present.ts';
import { ApiError, ApiUnreachable } from '../cluster/api-client.ts';
import { atTarget, labels, ungranted } from '../test/fixtures/daemon-at-target.ts';
import { eventually, nodeObject, runLoop } from '../test/fixtures/daemon-loop.ts';
import { deployment, imageOf } from '../test/fixtures/step-context.ts';
import { ForeignChangeError } from './content/write/write-content.ts';
import { NodeChannel } from './node-channel.ts';
import { UnsupportedHostError } from './os/detect-backend.ts';
import { PrepareRefused } from './records/current.ts';
import { writeLastUpdate } from './records/last-update.ts';
import { ChangedDisk } from './steps/preparation.ts';

const CHANGED = { path: '/etc/a', what: 'content', message: '/etc/a: has another content' } as const;

describe('the loop of a daemon', () => {
  test('does nothing until the operator has created its object, and then what that asks', async () => {
    const { server, steps, timesSynced } = await runLoop({ before: atTarget });
    await eventually(() => expect(timesSynced()).toBe(1));
    expect(steps).toEqual([]);
    server.put(nodeObject());
    // One that comes during the first look is looked at again after it.
    await eventually(() => expect(new Set(steps)).toEqual(new Set(['idle done'])));
    expect(server.status?.configVersion).toEqual({ current: 'rendered-2', desired: 'rendered-2' });
    expect(timesSynced()).toBe(1);
  });

  test.each([
    ['Debug', true],
    [undefined, false],
  ] as const)(
    'logs its steps where the MachineConfiguration requests logLevel %s: %s',
    async (logLevel, does) => {
      const messages: unknown[] = [];
      const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) });
      const options = { object: nodeObject(), before: atTarget, options: { log }, ...present({ logLevel }) };
      const { server, steps } = await runLoop(options);
      await eventually(() => expect(log.level).toBe(does ? 'debug' : 'info'));
      await eventually(() => expect(steps).not.toEqual([]));
      messages.length = 0;
      server.put(nodeObject({ policyDigest: 'another' }));
      await eventually(() => expect(steps.length).toBeGreaterThan(1));
      expect(messages.includes('Taking a step')).toBe(does);
    },
  );

  test('logs once what it has found, because most daemons have nothing else to log', async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const { server, steps } = await runLoop({ object: nodeObject(), before: atTarget, options: { log } });
    await eventually(() => expect(steps).toContain('idle done'));
    server.put(nodeObject({ policyDigest: 'another' }));
    await eventually(() => expect(steps.length).toBeGreaterThan(1));
    const found = lines
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .filter(({ msg }) => msg === 'Observed the node');
    const expected = { node: 'worker-1', config: 'rendered-2', mode: 'Standard', target: 'rendered-2' };
    expect(found).toEqual([expect.objectContaining({ ...expected, step: 'idle' })]);
  });

  test('reports a node that is at its target, and waits for a change of the spec', async () => {
    // Without a certificate that waits to be tried again, that time is nothing to it.
    const { server, steps, states } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      options: { postponedMs: 1 },
    });
    await eventually(() => expect(steps).toEqual(['idle done']));
    expect(server.condition('Updated')).toBe('Updated: The node runs its target');
    expect(states).toEqual(['updated']);
    server.put(nodeObject({ policyDigest: 'sha256:other' }));
    await eventually(() => expect(steps).toEqual(['idle done', 'idle done']));
  });

  test('looks again at once after a step that changed something', async () => {
    const { steps } = await runLoop({
      object: {
        ...nodeObject(),
        spec: {
          ...ungranted,
          configVersion: { desired: 'rendered-2' },
          configImage: { desiredImage: imageOf('2') },
          imageSigningKeys: 'Disabled',
        },
      },
      backend: {
        fetch: async (image) => deployment('/fetched', { image, labels }),
        stage: async (image) => deployment('/staged', { image, labels }),
        status: async () => ({ booted: deployment('/booted', { image: imageOf('2') }) }),
      },
    });
    await eventually(() => expect(steps).toEqual(['prepare done', 'awaitGrant done']));
  });

  test('tries again what failed, and reports why it can not say what the node is', async () => {
    let failures = 3;
    const { server, steps, states } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: {
        cleanup: async () => {
          failures -= 1;
          if (failures > 0) throw new Error('the disk is on fire');
        },
      },
    });
    await eventually(() => expect(steps).toEqual(['idle failed', 'idle failed', 'idle done']));
    expect(states).toEqual([
      'updated',
      'degraded DaemonFailed',
      'updated',
      'degraded DaemonFailed',
      'updated',
    ]);
    expect(server.condition('NodeDegraded')).toContain('AsExpected');
  });

  test.each(['done', 'failed'] as const)('counts the seconds of a step that is %s', async (result) => {
    const begin = performance.now();
    let ownMs = 0;
    const cleanup = async () => {
      const before = performance.now();
      for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
      ownMs = performance.now() - before;
      if (result === 'failed') throw new Error('the disk is on fire');
    };
    const { steps, seconds } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: { cleanup },
      options: { backoff: { firstMs: 3_600_000, longestMs: 3_600_000 } },
    });
    await eventually(() => expect(steps).toEqual([`idle ${result}`]));
    const [taken = 0] = seconds;
    expect(taken * 1_000).toBeGreaterThanOrEqual(ownMs);
    expect(taken * 1_000).toBeLessThanOrEqual(performance.now() - begin);
  });

  test.each([
    ['an unsupported host', new UnsupportedHostError('no ostree here'), 'UnsupportedHost: no ostree here'],
    ['any other trouble', new Error('no permission'), 'DaemonFailed: no permission'],
  ])('says of %s what it is', async (_name, error, expected) => {
    const { server, steps, states } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: { tool: () => Promise.reject(error) },
    });
    await eventually(() => expect(server.condition('NodeDegraded')).toBe(expected));
    expect(steps[0]).toBe('observe failed');
    expect(states[0]).toBe(`degraded ${expected.split(':')[0]}`);
  });

  test('says of a disk that was changed after an update was prepared that it drifted', async () => {
    const { server, steps, states } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: { tool: () => Promise.reject(new ForeignChangeError([CHANGED])) },
    });
    await eventually(() =>
      expect(server.condition('NodeDegraded')).toMatch(/^ConfigDrift: Changed on the node .* \/etc\/a: has/),
    );
    expect(steps[0]).toBe('observe failed');
    expect(states[0]).toBe('drifted ConfigDrift');
    const { path, message } = CHANGED;
    expect(server.status?.changedByHand).toEqual({ count: 1, paths: [{ path, message }] });
  });

  test.each([
    ['is refused', new PrepareRefused('not here'), `${PREPARE_REFUSED}: not here`],
    ['fails', new Error('the registry is away'), 'PrepareFailed: the registry is away'],
  ])('says of a target that %s why it could not be prepared', async (_name, error, expected) => {
    const { server, steps } = await runLoop({
      object: nodeObject({ configImage: { desiredImage: imageOf('2') }, imageSigningKeys: 'Disabled' }),
      backend: { fetch: () => Promise.reject(error) },
    });
    await eventually(() => expect(server.condition('UpdatePrepared')).toBe(expected));
    expect(steps[0]).toBe('prepare failed');
    expect(server.condition('NodeDegraded')).toContain('AsExpected');
  });

  test('names what was changed by hand of a target that is refused for it', async () => {
    const { server } = await runLoop({
      object: nodeObject({ configImage: { desiredImage: imageOf('2') }, imageSigningKeys: 'Disabled' }),
      backend: { fetch: () => Promise.reject(new ChangedDisk([CHANGED])) },
    });
    await eventually(() => expect(server.condition('UpdatePrepared')).toContain(CHANGED.message));
    const { path, message } = CHANGED;
    expect(server.status?.changedByHand).toEqual({ count: 1, paths: [{ path, message }] });
  });

  test.each([
    ['gives no answer', new ApiUnreachable('PUT status', new Error('refused'))],
    ['refuses a request', new ApiError(500, 'PUT status', {})],
  ])('an API server that %s makes the node no worse', async (_name, error) => {
    let writes = 0;
    const { server, states, steps } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      onStatus: () => {
        writes += 1;
        if (writes === 1) throw error;
      },
    });
    await eventually(() => expect(steps.at(-1)).toBe('idle done'));
    expect(steps[0]).toBe('idle failed');
    expect(states).not.toContain('degraded DaemonFailed');
    expect(server.condition('NodeDegraded')).toContain('AsExpected');
  });

  test('says what the API server refuses to it, until it does not', async () => {
    const words = 'admission webhook "nodes.example.org" denied the request: ask the security team';
    let now = Date.parse('2026-06-01T00:00:00Z');
    let isRefused = true;
    const { server, states } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: {
        cleanup: async () => {
          now += 5_000;
          if (isRefused) throw new ApiError(403, 'get Secret pull-secret', { message: words });
        },
      },
      options: { now: () => now },
    });
    const said = `RequestFailed: looking after the node fails: get Secret pull-secret: ${words}`;
    await eventually(() => expect(server.condition('DaemonStepsFailing')).toBe(said));
    expect(server.condition('Stalled')).toContain(words);
    expect(states).not.toContain('degraded DaemonFailed');
    isRefused = false;
    await eventually(() => expect(server.condition('DaemonStepsFailing')).toBeUndefined());
  });

  test('that can not write its trouble goes on', async () => {
    let cleanups = 0;
    let writes = 0;
    const { steps } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: {
        cleanup: async () => {
          cleanups += 1;
          if (cleanups === 1) throw new Error('the disk is on fire');
        },
      },
      onStatus: () => {
        writes += 1;
        if (writes === 2) throw new Error('no permission');
      },
    });
    await eventually(() => expect(steps).toEqual(['idle failed', 'idle done']));
  });

  test('reports why it waits for another target after one that failed, and does nothing meanwhile', async () => {
    const record: UpdateRecord = {
      config: 'rendered-2',
      actions: [],
      causes: [],
      source: 'test',
      startedAt: '2026-01-01T00:00:00.000Z',
      finishedAt: '2026-01-01T00:00:00.000Z',
      bootIDBefore: 'boot-0',
      bootIDAfter: 'boot-1',
      result: 'Failed',
      message: 'no such unit',
    };
    const { server, steps, states } = await runLoop({
      object: nodeObject(),
      before: (root) => writeLastUpdate(root, record),
    });
    await eventually(() => expect(steps).toEqual(['degraded done']));
    expect(server.condition('NodeDegraded')).toBe('UpdateFailed: no such unit');
    expect(states).toEqual(['degraded UpdateFailed']);
  });

  test('carries out a repair that its object requests, once', async () => {
    const object = nodeObject();
    const request = JSON.stringify({ id: 'r-1', by: 'ann', at: '2026-01-01T00:00:00Z' });
    const annotations = { 'shale.dev/repair': request };
    const { server, steps } = await runLoop({
      object: { ...object, metadata: { ...object.metadata, annotations } },
      before: atTarget,
    });
    await eventually(() => expect(steps).toEqual(['repair done', 'idle done']));
    expect(server.status?.lastRepair).toMatchObject({ id: 'r-1', result: 'Succeeded' });
  });

  test('tries certificates again that could not be applied, after a while', async () => {
    const { server, steps } = await runLoop({
      object: nodeObject({ certificates: { kubeletCA: 'sha256:1' } }),
      before: atTarget,
      options: { postponedMs: 5 },
    });
    const tries = () => steps.filter((step) => step.startsWith('applyCertificate')).length;
    await eventually(() => expect(tries()).toBeGreaterThanOrEqual(2));
    expect(server.requests).toContain('get ConfigMap');
    await eventually(() => expect(server.condition('CertificatesApplied')).toContain('NotApplied'));
  });

  test('leaves certificates alone meanwhile', async () => {
    const { steps } = await runLoop({
      object: nodeObject({ certificates: { kubeletCA: 'sha256:1' } }),
      before: atTarget,
      options: { postponedMs: 3_600_000 },
    });
    await eventually(() => expect(steps).toEqual(['applyCertificate done', 'idle done']));
  });

  describe('unless a test says otherwise', () => {
    /** Every wait of a daemon, in ms. */
    function recordWaits(): readonly number[] {
      const waits: number[] = [];
      const wait = NodeChannel.prototype.changedSince;
      const spy = vi.spyOn(NodeChannel.prototype, 'changedSince').mockImplementation(async function (
        this: NodeChannel,
        changes,
        ms,
        stop,
      ) {
        waits.push(ms);
        await wait.call(this, changes, ms, stop);
      });
      onTestFinished(() => spy.mockRestore());
      return waits;
    }
    test('it waits for its object a minute at a time, and pinned images an hour', async () => {
      const waits = recordWaits();
      await runLoop({ before: atTarget });
      await eventually(() => expect(waits.length).toBeGreaterThan(1));
      const [pinned = 0] = waits.toSorted((a, b) => b - a);
      expect(pinned).toBeGreaterThan(3_590_000);
      expect(pinned).toBeLessThanOrEqual(3_600_000);
      expect(waits).toContain(60_000);
    });

    test.each([
      ['tries certificates again after a minute', { kubeletCA: 'sha256:1' }, 60_000],
      ['looks again after ten minutes', {}, 600_000],
    ])('it %s', async (_what, certificates, expected) => {
      const waits = recordWaits();
      const { steps } = await runLoop({ object: nodeObject({ certificates }), before: atTarget });
      await eventually(() => expect(steps.at(-1)).toBe('idle done'));
      await eventually(() => expect(waits).toContain(expected));
    });
  });

  test('ends when it is told to, and reports no failure of what that interrupts', async () => {
    const { server, steps, end } = await runLoop({
      object: nodeObject(),
      before: atTarget,
      backend: {
        cleanup: (signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('interrupted')));
          }),
      },
    });
    await eventually(() => expect(server.condition('Updated')).toContain('Updated'));
    await end();
    expect(steps).toEqual([]);
    expect(server.condition('NodeDegraded')).toContain('AsExpected');
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { PinnedImagesRequest } from '../../api/pinned-image-set.ts';
import { present } from '../../api/present.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { RuntimeStandIn } from '../../test/fixtures/runtime-stand-in.ts';
import { quietChannel } from '../../test/fixtures/step-context.ts';
import type { BackgroundChannel } from '../steps/background-task.ts';
import { type PinnedImagesLoop, pinnedImagesWork, runPinnedImages } from './pinned-images-loop.ts';
import type { PinnedImagesReport } from './report.ts';

/** The loop of a node without images of its own, against a channel in memory. */
function aLoop(
  request: PinnedImagesRequest | undefined,
  {
    isKnown = true,
    recheckMs = 3_600_000,
    images = [] as readonly string[],
    backoff = { firstMs: 1, longestMs: 5 },
  } = {},
) {
  const root = mkdtempSync(path.join(tmpdir(), 'pinned-loop-'));
  const runtime = new RuntimeStandIn(root, 'containerd');
  const reports: PinnedImagesReport[] = [];
  const problems: string[] = [];
  const stop = new AbortController();
  let refusals = 0;
  const refuse = (count: number) => {
    refusals = count;
  };
  let changed = Promise.withResolvers<void>();
  const channel = {
    object: isKnown ? asking(request) : undefined,
    heldBy: undefined as string | undefined,
    changes: 0,
    /** How often the loop had nothing to do. */
    waits: 0,
    /** ms of each. */
    waitsMs: [] as number[],
    changedSince: async (changes: number, ms: number, signal: AbortSignal) => {
      // What watches for a holder waits, too.
      if (signal === stop.signal) {
        channel.waits += 1;
        channel.waitsMs.push(ms);
      }
      if (channel.changes !== changes || signal.aborted) return;
      const over = Promise.withResolvers<void>();
      const timer = setTimeout(over.resolve, ms);
      signal.addEventListener('abort', () => over.resolve(), { once: true });
      await Promise.race([changed.promise, over.promise]);
      clearTimeout(timer);
    },
  };
  const ended = runPinnedImages({
    ports: {
      host: { root },
      runOnHost: runtime.run,
      images: { open: async () => ({ labels: {}, layers: [] }) },
    } as unknown as PinnedImagesLoop['ports'],
    client: {
      find: async (_kind: unknown, name: string) =>
        images.length === 0
          ? undefined
          : { metadata: { name }, spec: { pinnedImages: images.map((image) => ({ name: image })) } },
    } as unknown as PinnedImagesLoop['client'],
    pullSecretFile: '/none',
    reserveBytes: 0,
    pinnedWithinMs: 0,
    channel,
    publish: async (report) => {
      refusals -= 1;
      if (refusals >= 0) throw new Error('the API server is away');
      reports.push(report);
    },
    backoff,
    recheckMs,
    onProblem: (message) => problems.push(message),
    log: pino({ level: 'silent' }),
    signal: stop.signal,
  });
  onTestFinished(async () => {
    stop.abort();
    await ended;
    rmSync(root, { recursive: true });
  });
  const notify = () => {
    channel.changes += 1;
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const hold = (by: string | undefined) => {
    channel.heldBy = by;
    notify();
  };
  const ask = (next: PinnedImagesRequest | undefined) => {
    channel.object = asking(next);
    notify();
  };
  return {
    runtime,
    reports,
    problems,
    refuse,
    ask,
    hold,
    stop,
    ended,
    waits: () => channel.waits,
    waitsMs: channel.waitsMs,
  };
}

const asking = (pinnedImages: PinnedImagesRequest | undefined) => ({ spec: present({ pinnedImages }) });

const until = (check: () => void) => vi.waitFor(check, { timeout: patience(10_000), interval: 5 });

test('what fails is reported, tried again, and told once', async () => {
  const { runtime, reports, problems } = aLoop({
    sets: [{ name: 'one', generation: 1 }],
    containerRuntime: 'containerd',
  });
  runtime.missing.add('crictl');
  await until(() => expect(reports.length).toBeGreaterThan(2));
  expect(problems).toEqual([
    'PinnedImageSet one: crictl is not installed on the node; images can only be pinned with it',
  ]);
  runtime.missing.clear();
  await until(() => expect(reports.at(-1)).toEqual({ kind: 'finished', sets: [] }));
});

test('what fails is tried again after a time that doubles, and from the start after a success', async () => {
  const spread = vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => spread.mockRestore());
  const unitMs = 600_000;
  const request: PinnedImagesRequest = { sets: [], containerRuntime: 'containerd' };
  const { runtime, ask, waits, waitsMs } = aLoop(request, {
    recheckMs: 1_000 * unitMs,
    backoff: { firstMs: unitMs, longestMs: 100 * unitMs },
  });
  runtime.missing.add('crictl');
  // Another request is tried at once, so that the test waits for none of these times.
  for (let tries = 1; tries < 10; tries += 1) {
    await until(() => expect(waits()).toBe(tries));
    if (tries === 7) runtime.missing.clear();
    if (tries === 8) runtime.missing.add('crictl');
    ask({ ...request, sets: [{ name: 'one', generation: tries }] });
  }
  await until(() => expect(waits()).toBe(10));
  const units = waitsMs.map((ms) => Math.ceil(ms / unitMs));
  expect(units).toEqual([1, 2, 4, 8, 16, 32, 64, 1_000, 1, 2]);
});

test('a change that is not about images asks the runtime nothing', async () => {
  const request: PinnedImagesRequest = { sets: [], containerRuntime: 'containerd' };
  const { runtime, reports, ask, waits } = aLoop(request);
  await until(() => expect([reports.length, waits()]).toEqual([1, 1]));
  const before = runtime.calls.length;
  ask({ ...request });
  await until(() => expect(waits()).toBe(2));
  expect([runtime.calls.length, reports.length]).toEqual([before, 1]);
  ask(undefined);
  await until(() => expect(reports.at(-1)).toEqual({ kind: 'none' }));
  expect([runtime.calls.length, reports.length]).toEqual([before, 2]);
});

test('a node without its object lets nothing go', async () => {
  const { reports, ask } = aLoop(undefined, { isKnown: false });
  ask({ sets: [], containerRuntime: 'containerd' });
  await until(() => expect(reports).toEqual([{ kind: 'finished', sets: [] }]));
});

test('a status that can not be written is tried again', async () => {
  const { reports, refuse, ask } = aLoop({ sets: [], containerRuntime: 'containerd' });
  await until(() => expect(reports).toHaveLength(1));
  refuse(2);
  ask(undefined);
  await until(() => expect(reports.at(-1)).toEqual({ kind: 'none' }));
});

test('it is looked again after a while whether everything is still there', async () => {
  const { reports } = aLoop({ sets: [], containerRuntime: 'containerd' }, { recheckMs: 1 });
  await until(() => expect(reports.length).toBeGreaterThan(2));
});

test.each([
  [undefined, 'crictl is not installed on the node; images can only be pinned with it'],
  ['two sets pin too much', 'two sets pin too much'],
])(
  'what fails without a set is reported of the node, after what the cluster says: %s',
  async (problem, expected) => {
    const failing = aLoop({
      sets: [],
      containerRuntime: 'containerd',
      ...present({ problem }),
    });
    failing.runtime.missing.add('crictl');
    await until(() =>
      expect(failing.reports.at(-1)).toEqual({ kind: 'finished', sets: [], problem: expected }),
    );
  },
);

test('of a request that is replaced meanwhile nothing more is pulled, and no end is reported', async () => {
  const image = (digit: string) => `r.io/app@sha256:${digit.repeat(64)}`;
  const request: PinnedImagesRequest = {
    sets: [{ name: 'one', generation: 1 }],
    containerRuntime: 'containerd',
  };
  const { runtime, reports, ask, problems } = aLoop(request, { images: [image('1'), image('2')] });
  runtime.onPull = () => ask(undefined);
  await until(() => expect(reports.at(-1)).toEqual({ kind: 'none' }));
  expect(runtime.calls.filter((call) => call.startsWith('crictl pull'))).toEqual([
    `crictl pull ${image('1')}`,
  ]);
  expect(reports.map(({ kind }) => kind)).toEqual(['progressing', 'none']);
  expect(problems).toEqual([]);
});

test('a problem that comes again after it was gone is told again', async () => {
  const { runtime, reports, problems } = aLoop(
    { sets: [{ name: 'one', generation: 1 }], containerRuntime: 'containerd' },
    { recheckMs: 1 },
  );
  runtime.missing.add('crictl');
  await until(() => expect(problems).toHaveLength(1));
  runtime.missing.clear();
  await until(() => expect(reports.at(-1)).toEqual({ kind: 'finished', sets: [] }));
  runtime.missing.add('crictl');
  await until(() => expect(problems).toHaveLength(2));
});

test('a node that somebody else holds pulls and pins nothing, and does so at once when it is given back', async () => {
  const image = `r.io/a@sha256:${'a'.repeat(64)}`;
  const { runtime, reports, ask, hold, waits } = aLoop(undefined, { images: [image] });
  await until(() => expect(reports).toEqual([{ kind: 'none' }]));
  const looksAgain = async (act: () => void) => {
    const before = waits();
    act();
    await until(() => expect(waits()).toBeGreaterThan(before));
  };
  await looksAgain(() => hold('its lease is held by ops'));
  await looksAgain(() => ask({ sets: [{ name: 'one', generation: 1 }], containerRuntime: 'containerd' }));
  expect(runtime.calls).toEqual([]);

  // In the middle of a pull.
  runtime.onPull = () => hold('its lease is held by ops again');
  await looksAgain(() => hold(undefined));
  expect(runtime.calls.join()).toContain('crictl pull');
  expect(runtime.pinned()).toEqual([]);
  expect(reports.at(-1)).toMatchObject({ kind: 'progressing' });

  runtime.onPull = () => undefined;
  hold(undefined);
  await until(() => expect(runtime.pinned()).toEqual([image]));
});

test('what its flag says in MiB stays free', async () => {
  const image = `r.io/a@sha256:${'a'.repeat(64)}`;
  const root = mkdtempSync(path.join(tmpdir(), 'pinned-loop-'));
  const stop = new AbortController();
  const object = {
    metadata: { name: 'worker-1' },
    spec: { pinnedImages: { sets: [{ name: 'one', generation: 1 }], containerRuntime: 'containerd' } },
  } as MachineConfigNode;
  let status: MachineConfigNodeStatus | undefined;
  const work = pinnedImagesWork.withFlags({ pinnedImagesReserve: 10 ** 12 });
  const ended = work({
    ports: {
      host: { root },
      runOnHost: new RuntimeStandIn(root, 'containerd').run,
      images: { open: async () => ({ labels: {}, layers: [] }) },
    },
    client: { find: async () => ({ metadata: { name: 'one' }, spec: { pinnedImages: [{ name: image }] } }) },
    channel: {
      ...quietChannel,
      object,
      update: async (compute: Parameters<BackgroundChannel['update']>[0]) => {
        status = compute(object, new Date());
      },
    },
    settings: { certificatePaths: { pullSecret: '/none' } },
    telemetry: { log: pino({ level: 'silent' }), events: { warning: () => undefined } },
    signal: stop.signal,
  } as unknown as Parameters<typeof work>[0]);
  onTestFinished(async () => {
    stop.abort();
    await ended;
    rmSync(root, { recursive: true });
  });
  await until(() =>
    expect(status?.pinnedImageSets?.[0]?.lastFailedGenerationError).toMatch(
      /and 1000000000000 MiB have to stay free$/,
    ),
  );
});

import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import { imageLabels } from '../../api/names.ts';
import type { Span, Tracer } from '../../cluster/tracing/span.ts';
import { journal, prepared } from '../../test/fixtures/daemon-observation.ts';
import { aMachineConfigNode, condition } from '../../test/fixtures/objects.ts';
import { deployment, imageOf, observation, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { OsBackend, StageOptions } from '../os/backend.ts';
import { PrepareRefused } from '../records/current.ts';
import { noMetrics } from './node-metrics.ts';
import { prepareTarget } from './prepare.ts';
import type { StepContext } from './step-context.ts';

const image = imageOf('2');
const target = { mode: 'Layered', config: 'rendered-2', image } as const;
const step = { kind: 'prepare', target, stuck: undefined } as const;
const unprepared = condition('UpdatePrepared', 'False');
const { spec } = observation();
const toImage = observation({
  spec: { ...spec, configImage: { desiredImage: image }, imageSigningKeys: 'Disabled' },
});

/** A node that stages as the test says. */
async function staging(stage: (options: StageOptions) => Promise<void> = async () => undefined) {
  const spans: Span[] = [];
  const bytes: number[] = [];
  const backend: Partial<OsBackend> = {
    status: async () => ({ booted: deployment('/booted', { image }) }),
    tool: async () => ({ name: 'ostree', installsPackages: false }),
    fetch: async (name, options) => {
      await stage(options);
      return deployment('/staged', { image: name, labels: { [imageLabels.renderedConfig]: target.config } });
    },
  };
  const node = await stepUnderTest({
    backend,
    context: { metrics: { ...noMetrics, staging: (done) => bytes.push(done) } },
  });
  const tracer: Tracer = { ...node.context.telemetry.tracer, record: (span) => void spans.push(span) };
  const context: StepContext = { ...node.context, telemetry: { ...node.context.telemetry, tracer } };
  return { ...node, context, spans, bytes };
}

describe('preparing a target', () => {
  test('remembers what it asks of the node, and says so', async () => {
    const { context, phases, events, spans, bytes } = await staging();
    context.memory.settledFor = 'before';

    expect(await prepareTarget(context, step, toImage)).toEqual({ kind: 'again' });

    expect(context.memory.prepared).toMatchObject({ plan: { config: 'rendered-2', image, actions: [] } });
    expect(context.memory.settledFor).toBeUndefined();
    expect(phases).toEqual([{ kind: 'preparing' }]);
    expect(events).toEqual([`rendered-2 in ${image}: None (the node has booted this image)`]);
    expect(spans).toHaveLength(1);
    expect(spans[0]?.failure).toBeUndefined();
    expect(bytes).toEqual([0]);
  });

  test('that fails has prepared nothing, and is traced as failed', async () => {
    const { context, events, spans } = await staging(() => Promise.reject(new TypeError('no such image')));
    context.memory.prepared = prepared('rendered-1', '1', []);
    await expect(prepareTarget(context, step, toImage)).rejects.toThrow('no such image');
    expect(context.memory.prepared).toBeUndefined();
    expect(events).toEqual([]);
    expect(spans.map(({ failure }) => failure)).toEqual(['TypeError']);
  });

  test.each(['sha256:unknown', undefined])(
    'stages nothing of an image that keys %s did not sign',
    async (keys) => {
      let staged = 0;
      const { context } = await staging(async () => void staged++);
      const { imageSigningKeys: _, ...others } = toImage.spec;
      const unsigned = { ...toImage, spec: { ...others, ...(keys && { imageSigningKeys: keys }) } };
      await expect(prepareTarget(context, step, unsigned)).rejects.toBeInstanceOf(PrepareRefused);
      expect(staged).toBe(0);
    },
  );

  test('touches nothing of a target that the operator found irreconcilable', async () => {
    let staged = 0;
    const { context } = await staging(async () => void staged++);
    const irreconcilable = 'rendered-2 needs disks that only Ignition sets up';
    const held = { ...toImage, spec: { ...toImage.spec, irreconcilable } };
    const refused = prepareTarget(context, step, held);
    await expect(refused).rejects.toThrow(irreconcilable);
    await expect(refused).rejects.toBeInstanceOf(PrepareRefused);
    expect(staged).toBe(0);
  });

  test.each([
    ['unstages what an earlier target has left', undefined, 1],
    ['leaves the next boot of an update under way as it was granted', journal('rebooting'), 0],
  ])('%s', async (_name, stuck, times) => {
    const { context } = await staging();
    let unstaged = 0;
    const left = {
      booted: deployment('/booted', { image }),
      staged: deployment('/left', { image: imageOf('1') }),
    };
    Object.assign(context.ports.backend, {
      status: async () => left,
      unstage: async () => void unstaged++,
    });
    await prepareTarget(context, { ...step, stuck: stuck }, toImage);
    expect(unstaged).toBe(times);
  });

  test('stops in the middle once somebody else has the node, and fails by that no more than it succeeds', async () => {
    const began = Promise.withResolvers<void>();
    const { context, phases, events, spans } = await staging(async ({ interrupt }) => {
      began.resolve();
      await new Promise((_, reject) =>
        interrupt?.addEventListener('abort', () => reject(new Error('killed'))),
      );
    });
    const taken = Promise.withResolvers<void>();
    const channel = {
      ...context.channel,
      heldBy: undefined as string | undefined,
      changedSince: () => taken.promise,
    };
    const preparing = prepareTarget({ ...context, channel }, step, toImage);
    await began.promise;
    channel.heldBy = 'its lease is held by ops';
    taken.resolve();
    expect(await preparing).toEqual({ kind: 'again' });
    expect(context.memory.prepared).toBeUndefined();
    expect([phases, events, spans]).toEqual([[{ kind: 'preparing' }], [], []]);
  });

  test('that ends with the daemon is not traced', async () => {
    const ending = new AbortController();
    const { context, spans } = await staging(() => {
      ending.abort();
      return Promise.reject(new Error('interrupted'));
    });
    await expect(prepareTarget({ ...context, signal: ending.signal }, step, toImage)).rejects.toThrow();
    expect(spans).toEqual([]);
  });

  test('reports progress at most once a second, and waits for the last report', async () => {
    const { context, phases, bytes } = await staging(async ({ onProgress }) => {
      onProgress?.(1, 10);
      onProgress?.(2, 10);
    });
    await prepareTarget(context, step, toImage);
    expect(bytes).toEqual([0, 1, 2]);
    expect(phases.slice(1)).toEqual([]);
  });

  test('reports progress again once a second is over', async () => {
    // Whole: with fractions 999 and 1 may be less than a second.
    let now = Math.ceil(performance.now());
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => clock.mockRestore());
    const { context, phases } = await staging(async ({ onProgress }) => {
      for (const [done, ms] of [
        [1, 999],
        [2, 1],
        [3, 999],
        [4, 1],
      ] as const) {
        now += ms;
        onProgress?.(done, 10);
      }
    });
    await prepareTarget(context, step, toImage);
    expect(phases.slice(1)).toEqual([
      { kind: 'preparing', staging: { bytesDone: 2, bytesTotal: 10 } },
      { kind: 'preparing', staging: { bytesDone: 4, bytesTotal: 10 } },
    ]);
  });

  test.each([
    ['leaves the refusal of this target where the admin reads it', {}, []],
    [
      'of another config is reported',
      { configVersion: { current: '', desired: 'rendered-1' } },
      [{ kind: 'preparing' }],
    ],
    [
      'of another image is reported',
      { configImage: { desiredImage: imageOf('3') } },
      [{ kind: 'preparing' }],
    ],
    [
      'that failed is reported again',
      { conditions: [{ ...unprepared, reason: 'PrepareFailed' }] },
      [{ kind: 'preparing' }],
    ],
  ])('again %s', async (_name, more, reported) => {
    const { context, phases } = await staging();
    const object = {
      ...aMachineConfigNode('worker-1'),
      spec: toImage.spec,
      status: {
        configVersion: { current: '', desired: 'rendered-2' },
        configImage: { desiredImage: image },
        conditions: [{ ...unprepared, reason: PREPARE_REFUSED }],
        ...more,
      },
    };
    await prepareTarget({ ...context, channel: { ...context.channel, object } }, step, toImage);
    expect(phases).toEqual(reported);
  });
});

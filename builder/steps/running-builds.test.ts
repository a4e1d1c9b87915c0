import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { present } from '../../api/present.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { noTracer } from '../../cluster/tracing/span.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aBuild, aMachineOSConfig, aRenderedConfig, image } from '../../test/fixtures/objects.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { BuildFailure } from '../build-failure.ts';
import { BuildMetrics } from '../metrics.ts';
import { type BuildResult, outcomeOf } from '../status.ts';
import { type BuildJob, RunningBuilds, type RunningBuildsOptions } from './running-builds.ts';

const NOW = '2026-06-01T00:00:00.000Z';
const result: BuildResult = {
  image: parseDigestedPullspec(image('a')),
  baseImage: parseDigestedPullspec(image('b')),
  way: 'Append',
  transitions: [],
  summary: 'one layer',
  bytes: { sent: 3, mounted: 4 },
  warnings: ['no provenance'],
};

class World {
  readonly cluster = new MemoryCluster();
  readonly events: string[] = [];
  readonly metrics = new BuildMetrics();
  /** MachineOSConfigs that are to be reconciled again. */
  readonly unwritten: string[] = [];
  /** ms of each pause between two attempts. */
  readonly pauses: number[] = [];
  readonly builds: RunningBuilds;

  /** @param pause how long a pause takes here, whatever it was to take; `timer` is that of the builder. */
  constructor(
    build: RunningBuildsOptions['build'],
    parallel = 4,
    pause: 'timer' | (() => Promise<void>) = () => Promise.resolve(),
  ) {
    const record =
      (type: string) =>
      (object: { readonly metadata: { readonly name: string } }, reason: string, message: string) => {
        this.events.push(`${type} ${object.metadata.name} ${reason}: ${message}`);
      };
    this.builds = new RunningBuilds({
      client: this.cluster.client(),
      events: { normal: record('Normal'), warning: record('Warning') },
      log: pino({ enabled: false }),
      now: () => new Date(NOW),
      build,
      parallel,
      metrics: this.metrics,
      tracer: noTracer,
      onUnwritten: (name) => void this.unwritten.push(name),
      ...present({ pause: pause === 'timer' ? undefined : this.#recorded(pause) }),
    });
  }

  #recorded(pause: () => Promise<void>) {
    return (ms: number) => {
      this.pauses.push(ms);
      return pause();
    };
  }

  job(name: string): BuildJob {
    const build = this.cluster.put(MachineOSBuilds, aBuild(name, 'rendered-worker-1'));
    return {
      build,
      machineOSConfig: aMachineOSConfig('worker'),
      rendered: aRenderedConfig('rendered-worker-1'),
      baseImage: image('b'),
      architectures: ['amd64'],
    };
  }

  condition(name: string, type: string) {
    return this.cluster
      .get(MachineOSBuilds, name)
      ?.status?.conditions?.find((condition) => condition.type === type);
  }

  async ended(): Promise<void> {
    await vi.waitFor(() => expect(this.builds.names().size).toBe(0), { timeout: patience(20_000) });
  }

  async metric(name: string): Promise<string[]> {
    const text = await this.metrics.registry.metrics();
    return text.split('\n').filter((line) => line.startsWith(name));
  }
}

/** Work that ends only when its build is aborted. */
const untilAborted = (_job: BuildJob, _step: unknown, signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

describe('a build that succeeds', () => {
  test('is recorded, with an event for it and for each warning, and counted', async () => {
    const world = new World(async () => result);
    world.builds.start(world.job('one'));
    expect(world.builds.names()).toEqual(new Set(['one']));
    await world.ended();
    expect(world.cluster.get(MachineOSBuilds, 'one')?.status).toMatchObject({
      buildStart: NOW,
      buildEnd: NOW,
      digestedImagePushSpec: image('a'),
    });
    expect(world.condition('one', 'Succeeded')?.message).toBe('one layer');
    expect(world.events).toEqual([
      `Normal one BuildSucceeded: ${image('a')}: one layer`,
      'Warning one ProvenanceNotAttached: no provenance',
    ]);
    expect(await world.metric('shale_builder_builds_total')).toEqual([
      'shale_builder_builds_total{result="Succeeded",way="Append"} 1',
    ]);
    expect(await world.metric('shale_builder_layer_bytes_total')).toEqual([
      'shale_builder_layer_bytes_total{how="sent"} 3',
      'shale_builder_layer_bytes_total{how="mounted"} 4',
    ]);
    expect(await world.metric('shale_builder_phase_seconds_count')).toEqual([
      'shale_builder_phase_seconds_count{phase="queue"} 1',
      'shale_builder_phase_seconds_count{phase="build"} 1',
    ]);
  });

  test('is measured in seconds', async () => {
    const world = new World(async () => {
      const end = performance.now() + 2;
      while (performance.now() < end) await new Promise(setImmediate);
      return result;
    });
    const start = performance.now();
    world.builds.start(world.job('one'));
    await world.ended();
    const seconds = (performance.now() - start) / 1000;
    for (const phase of ['queue', 'build']) {
      const [line = ''] = await world.metric(`shale_builder_phase_seconds_sum{phase="${phase}"}`);
      const measured = Number(line.split(' ')[1]);
      expect(measured).toBeGreaterThanOrEqual(phase === 'build' ? 0.002 : 0);
      expect(measured).toBeLessThanOrEqual(seconds);
    }
  });

  test('is run once, however often it is started', async () => {
    let runs = 0;
    const world = new World(async () => {
      runs += 1;
      return result;
    });
    const job = world.job('one');
    world.builds.start(job);
    world.builds.start(job);
    await world.ended();
    expect(runs).toBe(1);
  });
});

describe('a build that fails', () => {
  test('for good is recorded with its reason and log, and not tried again', async () => {
    let runs = 0;
    const world = new World(() => {
      runs += 1;
      return Promise.reject(new BuildFailure('ContainerfileFailed', 'exit 3', { logTail: ['last'] }));
    });
    world.builds.start(world.job('one'));
    await world.ended();
    expect(runs).toBe(1);
    expect(world.condition('one', 'Failed')).toMatchObject({
      reason: 'ContainerfileFailed',
      message: 'exit 3',
    });
    expect(world.cluster.get(MachineOSBuilds, 'one')?.status?.logTail).toEqual(['last']);
    expect(world.events).toEqual(['Warning one ContainerfileFailed: exit 3']);
    expect(await world.metric('shale_builder_builds_total')).toEqual([
      'shale_builder_builds_total{result="Failed",way=""} 1',
    ]);
  });

  test('for a while is tried again, and other builds have its slot in between', async () => {
    const order: string[] = [];
    const paused = Promise.withResolvers<void>();
    const build = async ({ build }: BuildJob) => {
      order.push(build.metadata.name);
      if (order.length === 1) throw new BuildFailure('RegistryUnavailable', 'refused', { temporary: true });
      return result;
    };
    const world = new World(build, 1, () => paused.promise);
    world.builds.start(world.job('one'));
    world.builds.start(world.job('two'));
    await vi.waitFor(() => expect(outcomeOfNamed(world, 'two')).toBe('Succeeded'), {
      timeout: patience(20_000),
    });
    expect(world.condition('one', 'Building')).toMatchObject({
      status: 'True',
      reason: 'Retrying',
      message: 'Attempt 1 failed (RegistryUnavailable); the next one starts at 2026-06-01T00:00:01Z: refused',
    });
    paused.resolve();
    await world.ended();
    expect(world.pauses).toEqual([1_000]);
    expect(order).toEqual(['one', 'two', 'one']);
    expect(outcomeOfNamed(world, 'one')).toBe('Succeeded');
    expect(world.cluster.get(MachineOSBuilds, 'one')?.status?.attempts).toBe(1);
  });

  test('by wrong content has that many attempts, however often its registry was away before', async () => {
    const said: (string | undefined)[] = [];
    const world = new World(async () => {
      said.push(world.condition('one', 'Building')?.message);
      const reason = said.length === 1 ? 'RegistryUnavailable' : 'UnexpectedContent';
      if (said.length < 3) throw new BuildFailure(reason, 'odd', { temporary: true, logTail: ['last'] });
      return result;
    });
    world.builds.start(world.job('one'));
    await world.ended();
    expect(said.slice(1)).toEqual([
      'Attempt 1 failed (RegistryUnavailable); the next one starts at 2026-06-01T00:00:01Z: odd',
      'Attempt 2 of 6 failed (UnexpectedContent); the next one starts at 2026-06-01T00:00:01Z: odd',
    ]);
    expect(world.cluster.get(MachineOSBuilds, 'one')?.status?.logTail).toEqual(['last']);
  });

  test('by an error that nobody expected is tried again', async () => {
    const runs: number[] = [];
    const build = async () => {
      if (runs.push(performance.now()) === 1) throw new Error('odd');
      return result;
    };
    const world = new World(build, 4, 'timer');
    world.builds.start(world.job('one'));
    await world.ended();
    expect(runs).toHaveLength(2);
    const [first = 0, second = 0] = runs;
    // A timer may fire a millisecond early.
    expect(second - first).toBeGreaterThan(995);
  });
});

describe('a build that is stopped', () => {
  test('between two attempts does not wait for the next one', async () => {
    const away = { temporary: true, retryAfterMs: 240_000 };
    const failing = () => Promise.reject(new BuildFailure('RegistryUnavailable', 'x', away));
    const world = new World(failing, 4, 'timer');
    world.builds.start(world.job('one'));
    await vi.waitFor(() => expect(world.condition('one', 'Building')?.reason).toBe('Retrying'), {
      timeout: patience(20_000),
    });
    await world.builds.abort('one');
    expect(world.builds.names().size).toBe(0);
    expect(outcomeOfNamed(world, 'one')).toBeUndefined();
  });

  test('ends before abort returns, and its status is left to whoever aborts it', async () => {
    const world = new World(untilAborted);
    world.builds.start(world.job('one'));
    await vi.waitFor(() => expect(world.condition('one', 'Building')?.status).toBe('True'));
    const before = world.cluster.get(MachineOSBuilds, 'one')?.status;
    await world.builds.abort('one');
    expect(world.builds.names().size).toBe(0);
    expect(world.cluster.get(MachineOSBuilds, 'one')?.status).toEqual(before);
    expect(outcomeOfNamed(world, 'one')).toBeUndefined();
    expect(await world.metric('shale_builder_builds_total')).toEqual([
      'shale_builder_builds_total{result="Interrupted",way=""} 1',
    ]);
    await world.builds.abort('nobody');
  });

  test.each([
    [true, 'Interrupted'],
    [false, undefined],
  ])('with all others is marked (%s): %s', async (mark, outcome) => {
    const world = new World(untilAborted, 1);
    for (const name of ['one', 'two']) world.builds.start(world.job(name));
    await vi.waitFor(() => expect(world.condition('one', 'Building')?.status).toBe('True'));
    await world.builds.stopAll(mark);
    for (const name of ['one', 'two']) expect(outcomeOfNamed(world, name)).toBe(outcome);
    if (mark) expect(world.condition('one', 'Interrupted')?.message).toContain('was stopped');
  });
});

test('a build that is deleted while it fails is not tried again', async () => {
  let runs = 0;
  const world = new World(async () => {
    runs += 1;
    world.cluster.remove(MachineOSBuilds, 'one');
    if (runs === 1) throw new BuildFailure('RegistryUnavailable', 'refused', { temporary: true });
    return result;
  });
  world.builds.start(world.job('one'));
  await world.ended();
  expect(runs).toBe(1);
});

test('a final status is never written over', async () => {
  const world = new World(async () => result);
  const job = world.job('one');
  const conditions = [
    { type: 'Failed', status: 'True' as const, reason: 'X', message: '', lastTransitionTime: NOW },
  ];
  world.cluster.put(MachineOSBuilds, { ...job.build, status: { conditions } });
  world.builds.start(job);
  await world.ended();
  expect(world.cluster.get(MachineOSBuilds, 'one')?.status).toEqual({ conditions });
});

describe('an API server that is away', () => {
  test('when a build starts ends the build; its MachineOSConfig is reconciled, and it is started again', async () => {
    const world = new World(async () => result);
    const job = world.job('one');
    world.cluster.trouble = () => 'unavailable';
    world.builds.start(job);
    await world.ended();
    expect(world.unwritten).toEqual(['worker']);
    expect(outcomeOfNamed(world, 'one')).toBeUndefined();
    world.cluster.trouble = () => 'none';
    world.builds.start(job);
    await world.ended();
    expect(outcomeOfNamed(world, 'one')).toBe('Succeeded');
  });

  test.each([
    ['succeeds', async () => result, 'Succeeded', `Normal one BuildSucceeded: ${image('a')}: one layer`],
    [
      'fails for good',
      () => Promise.reject(new BuildFailure('ContainerfileFailed', 'exit 3')),
      'Failed',
      'Warning one ContainerfileFailed: exit 3',
    ],
  ] as const)(
    'when a build %s: its end is kept until it is written, and it is not built again',
    async (...row) => {
      const [, build, outcome, event] = row;
      let runs = 0;
      const world = new World(() => {
        runs += 1;
        world.cluster.trouble = () => 'unavailable';
        return build();
      });
      const job = world.job('one');
      world.builds.start(job);
      await vi.waitFor(() => expect(world.unwritten).toEqual(['worker']), { timeout: patience(20_000) });
      await expect(world.builds.writeEnds('worker')).rejects.toMatchObject({ status: 503 });
      await world.builds.writeEnds('infra');
      expect([outcomeOfNamed(world, 'one'), world.builds.names(), world.events]).toEqual([
        undefined,
        new Set(['one']),
        [],
      ]);
      world.builds.start(job);
      world.cluster.trouble = () => 'none';
      await world.builds.writeEnds('worker');
      await world.builds.writeEnds('worker');
      expect(outcomeOfNamed(world, 'one')).toBe(outcome);
      expect(world.events.filter((line) => line === event)).toEqual([event]);
      expect([runs, world.builds.names().size]).toEqual([1, 0]);
    },
  );

  test('between two attempts does not end the build', async () => {
    let runs = 0;
    const world = new World(async () => {
      runs += 1;
      world.cluster.trouble = () => (runs === 1 ? 'unavailable' : 'none');
      if (runs === 1) throw new BuildFailure('RegistryUnavailable', 'refused', { temporary: true });
      return result;
    });
    world.builds.start(world.job('one'));
    await world.ended();
    expect([runs, outcomeOfNamed(world, 'one'), world.unwritten]).toEqual([2, 'Succeeded', []]);
  });

  test.each([
    [true, 'Succeeded'],
    [false, undefined],
  ])('when the builder stops: an end that is not written is marked (%s): %s', async (mark, outcome) => {
    const world = new World(async () => {
      world.cluster.trouble = () => 'unavailable';
      return result;
    });
    world.builds.start(world.job('one'));
    await vi.waitFor(() => expect(world.unwritten).toEqual(['worker']), { timeout: patience(20_000) });
    // Nothing comes of it, and nothing is thrown.
    await world.builds.stopAll(mark);
    world.cluster.trouble = () => 'none';
    await world.builds.stopAll(mark);
    expect(outcomeOfNamed(world, 'one')).toBe(outcome);
  });

  test('does not keep the end of a build that is interrupted, or deleted', async () => {
    const world = new World(async () => {
      world.cluster.trouble = () => 'unavailable';
      return result;
    });
    for (const name of ['one', 'two']) {
      world.cluster.trouble = () => 'none';
      world.builds.start(world.job(name));
      await vi.waitFor(() => expect(world.unwritten).toContain('worker'), { timeout: patience(20_000) });
      world.unwritten.length = 0;
    }
    await world.builds.abort('one');
    world.cluster.trouble = () => 'none';
    world.cluster.remove(MachineOSBuilds, 'two');
    await world.builds.writeEnds('worker');
    expect([world.builds.names().size, outcomeOfNamed(world, 'one')]).toEqual([0, undefined]);
  });
});

function outcomeOfNamed({ cluster }: World, name: string) {
  const build = cluster.get(MachineOSBuilds, name);
  return build === undefined ? undefined : outcomeOf(build);
}

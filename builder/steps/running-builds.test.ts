import { describe, expect, test, vi } from 'vitest';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { image } from '../../test/fixtures/objects.ts';
import { patience } from '../../test/fixtures/patience.ts';
import {
  NOW,
  outcomeOfNamed,
  result,
  untilAborted,
  World,
} from '../../test/fixtures/running-builds-world.ts';
import { BuildFailure } from '../build-failure.ts';
import type { BuildJob } from './running-builds.ts';

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
    ['interruptAll', 'Interrupted'],
    ['abandonAll', undefined],
  ] as const)('with all others by %s is then: %s', async (stop, outcome) => {
    const world = new World(untilAborted, 1);
    for (const name of ['one', 'two']) world.builds.start(world.job(name));
    await vi.waitFor(() => expect(world.condition('one', 'Building')?.status).toBe('True'));
    await world.builds[stop]();
    for (const name of ['one', 'two']) expect(outcomeOfNamed(world, name)).toBe(outcome);
    if (stop === 'interruptAll')
      expect(world.condition('one', 'Interrupted')?.message).toContain('was stopped');
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

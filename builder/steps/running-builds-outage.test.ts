import { describe, expect, test, vi } from 'vitest';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { image } from '../../test/fixtures/objects.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { outcomeOfNamed, result, World } from '../../test/fixtures/running-builds-world.ts';
import { BuildFailure } from '../build-failure.ts';

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
    ['interruptAll', 'Succeeded'],
    ['abandonAll', undefined],
  ] as const)(
    'when the builder stops by %s, an end that is not written is then: %s',
    async (stop, outcome) => {
      const world = new World(async () => {
        world.cluster.trouble = () => 'unavailable';
        return result;
      });
      world.builds.start(world.job('one'));
      await vi.waitFor(() => expect(world.unwritten).toEqual(['worker']), { timeout: patience(20_000) });
      // Nothing comes of it, and nothing is thrown.
      await world.builds[stop]();
      world.cluster.trouble = () => 'none';
      await world.builds[stop]();
      expect(outcomeOfNamed(world, 'one')).toBe(outcome);
    },
  );

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

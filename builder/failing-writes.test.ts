import { describe, expect, it } from 'vitest';
import { MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { ApiError } from '../cluster/api-client.ts';
import { REPORT_AFTER } from '../cluster/failure.ts';
import { poolTarget } from '../rollout/pools/pool-target.ts';
import { BuildWorld, CONFIG } from '../test/fixtures/build-world.ts';
import { aPool, aRenderedConfig } from '../test/fixtures/objects.ts';
import { World as RunningBuildsWorld } from '../test/fixtures/running-builds-world.ts';

const WORDS = 'admission webhook "builds.example.org" denied the request: ask the image team';
const DOING = 'keeping the build of its pool';

/**
 * A builder in whose way something is; each pass comes a minute after the one before, as the longest back-off has it.
 */
async function passes(world: BuildWorld, count: number): Promise<void> {
  for (let pass = 0; pass < count; pass += 1) {
    const config = world.cluster.get(MachineOSConfigs, 'worker');
    if (config === undefined) throw new Error('it was put');
    try {
      await world.reconcile();
      world.failing.over(config, DOING);
    } catch (error) {
      world.failing.failed(config, DOING, error);
    }
    world.clock += 60_000;
  }
}

const conditionOf = (world: BuildWorld, of: string) =>
  world.cluster.get(MachineOSConfigs, 'worker')?.status?.conditions?.find(({ type }) => type === of);

describe('a build that can’t be created', () => {
  it.each([
    [403, REPORT_AFTER.Refused],
    [409, REPORT_AFTER.Conflict],
    [422, REPORT_AFTER.Refused],
    [429, REPORT_AFTER.Throttled],
    [500, REPORT_AFTER.Unavailable],
  ])(
    'for %i is said by its MachineOSConfig after %i ms, and by its pool, until it can',
    async (status, after) => {
      const world = new BuildWorld();
      world.cluster.trouble = (name, { verb, kind }) =>
        verb === 'create' && kind === 'MachineOSBuild'
          ? new ApiError(status, `create MachineOSBuild ${name}`, { message: WORDS })
          : 'none';
      await passes(world, Math.floor(after / 60_000));
      expect(conditionOf(world, 'StepsFailing')).toBeUndefined();
      await passes(world, 3);
      expect(conditionOf(world, 'StepsFailing')).toMatchObject({
        status: 'True',
        message: expect.stringMatching(new RegExp(`^${DOING} fails: create MachineOSBuild .*${WORDS}$`)),
      });
      expect(conditionOf(world, 'Stalled')).toMatchObject({ status: 'True' });
      const machineOSConfig = world.cluster.get(MachineOSConfigs, 'worker');
      expect(machineOSConfig?.status?.failingSteps).toMatchObject([
        { name: 'worker', step: DOING, message: expect.stringContaining(WORDS) },
      ]);
      expect(
        poolTarget({
          pool: aPool('worker', { configuration: { name: CONFIG } }),
          rendered: aRenderedConfig(CONFIG),
          machineOSConfig,
          coverage: 'excluded',
          hasImages: () => false,
          record: [],
          images: { builds: [], policyDigest: undefined, checkOf: () => undefined, unlisted: () => [] },
        }),
      ).toMatchObject({ state: 'BuildFailed', why: expect.stringContaining(WORDS) });
      world.cluster.trouble = () => 'none';
      await passes(world, 2);
      expect(conditionOf(world, 'StepsFailing')).toBeUndefined();
      expect(world.cluster.get(MachineOSConfigs, 'worker')?.status?.failingSteps).toBeUndefined();
      expect(conditionOf(world, 'Stalled')?.status).toBe('False');
      expect(world.cluster.list(MachineOSBuilds)).toHaveLength(1);
    },
  );
});

it('a build whose status can’t be written is found at its MachineOSConfig', async () => {
  const world = new RunningBuildsWorld(() => Promise.reject(new Error('nothing is built')));
  world.cluster.trouble = () => new ApiError(403, 'replace MachineOSBuild one status', { message: WORDS });
  world.builds.start(world.job('one'));
  await expect.poll(() => world.unwritten).toEqual(['worker']);
  expect(world.failing.all()).toMatchObject([
    {
      object: { kind: 'MachineOSConfig', metadata: { name: 'worker' } },
      doing: 'writing the status of MachineOSBuild one',
      failure: { kind: 'Refused', why: expect.stringContaining(WORDS) },
    },
  ]);
});

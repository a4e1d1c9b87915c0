import { readdir } from 'node:fs/promises';
import { ImageDigestMirrorSets } from '../../../../api/image-sources.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../../../api/machine-config-pool.ts';
import { annotations, OPERATOR_DEPLOYMENT } from '../../../../api/names.ts';
import type { Look } from '../../wait-until.ts';
import { expectOneAtATime, expectOneReboot, expectRunningText } from '../expect-nodes.ts';
import { POOLS, ROLLOUT_WORKLOADS, readDisks, rollOut } from '../roll-out.ts';
import { lookAtRollout } from '../rollout-look.ts';
import { EXAMPLES, readExamples, type TourContext, type TourStep } from '../step.ts';

/** The examples, as an admin would apply them; the daemons write files and units themselves. */
export const standardMode: TourStep = {
  title: 'Standard mode: the node daemons apply the MachineConfigs in examples/',
  async run(tour) {
    const files = (await readdir(EXAMPLES)).filter((file) => file.endsWith('.yaml')).sort();
    const configs = (await readExamples(...files))
      .filter(({ kind }) => kind === 'MachineConfig')
      .map(({ metadata }) => metadata.name);
    const missingInConfig = (pool: MachineConfigPool) => missingIn(pool, configs);
    const rolledOut = await rollOut(tour, {
      what: "every node has the examples' files, units and kernel arguments",
      mode: 'Standard',
      act: () => applyPaused(tour, () => tour.applyExamples(...files), missingInConfig),
      missingInConfig,
    });
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'ntp1.example.org');
    await expectRunningText(tour, rolledOut, '/etc/systemd/system/node-inventory.service', 'ExecStart=');
    await expectRunningText(
      tour,
      rolledOut,
      '/etc/motd.d/50-configured-by.motd',
      'This node is configured by the cluster',
    );
    await expectRunningText(tour, rolledOut, '/etc/containers/registries.conf', 'mirror.example.org');
    const mirrors = await tour.client.list(ImageDigestMirrorSets, { signal: tour.signal });
    const effects = mirrors.items.map(({ metadata }) => metadata.annotations?.[annotations.effect]);
    tour.check(
      'the mirror set reports its effect on each pool',
      effects.every((effect) => effect?.includes('"worker"') && effect.includes('"infra"')),
      effects,
    );
    tour.check(
      'every node booted with the kernel arguments',
      rolledOut.nodes.every(({ after }) => after.booted.kernelArguments.includes('audit=1')),
      rolledOut.nodes.map(({ after }) => after.booted.kernelArguments),
    );
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
  },
};

/**
 * Applies what belongs together while the pools are paused. Each is rendered once more when a change comes more than
 * two seconds after another, as on a machine that is busy, and a node would reboot for both.
 */
async function applyPaused(
  tour: TourContext,
  apply: () => Promise<void>,
  missingInConfig: (pool: MachineConfigPool) => string | undefined,
): Promise<void> {
  const { view } = tour;
  await pausePools(tour, true);
  await apply();
  const look = (): Look<true> => {
    const missing = view.pools.list().flatMap((pool) => missingInConfig(pool) ?? []);
    return missing.length === 0 ? { met: true } : { seen: missing.join('; ') };
  };
  await tour.until('the pools, which are paused, have rendered the examples', look, [OPERATOR_DEPLOYMENT]);
  await pausePools(tour, false);
}

async function pausePools({ client, signal }: TourContext, paused: boolean): Promise<void> {
  for (const pool of Object.keys(POOLS)) {
    await client.patch(MachineConfigPools, pool, { type: 'merge', body: { spec: { paused } } }, { signal });
  }
}

/** @param configs MachineConfigs named after their pool; those of worker are every pool's. */
function missingIn({ metadata, spec }: MachineConfigPool, configs: readonly string[]): string | undefined {
  const sources = spec.configuration?.source?.map(({ name }) => name) ?? [];
  const own = configs.filter((name) => name.includes('worker') || name.includes(metadata.name));
  const missing = own.filter((name) => !sources.includes(name));
  return missing.length === 0 ? undefined : `pool ${metadata.name}: not rendered yet: ${missing.join(', ')}`;
}

/** Nodes boot the stock image, and report that they run what their pool asks for. */
export const clusterUp: TourStep = {
  title: 'Start the cluster: API server, registry, stock OS image, 3 worker nodes and 1 infra node',
  async run(tour) {
    const { view } = tour;
    await tour.until(
      'every node runs the stock image in standard mode',
      () =>
        lookAtRollout(
          { pools: POOLS, mode: 'Standard', missingInConfig: () => undefined },
          {
            pools: view.pools.list(),
            machineConfigNodes: view.machineConfigNodes.list(),
            builds: view.builds.list(),
          },
        ),
      ROLLOUT_WORKLOADS,
    );
    const images = [...(await readDisks(tour))].map(([name, { booted }]) => [name, booted.image]);
    tour.check(
      'every node booted the stock image, by digest',
      images.every(([, image]) => image === tour.record.stockImage),
      images,
    );
  },
};

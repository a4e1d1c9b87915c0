import { readdir } from 'node:fs/promises';
import { ImageDigestMirrorSets } from '../../../../api/image-sources.ts';
import { annotations } from '../../../../api/names.ts';
import { expectOneAtATime, expectOneReboot, expectRunningText } from '../expect-nodes.ts';
import { POOLS, ROLLOUT_WORKLOADS, readDisks, rollOut } from '../roll-out.ts';
import { lookAtRollout } from '../rollout-look.ts';
import { EXAMPLES, readExamples, type TourStep } from '../step.ts';

/** The examples, as an admin would apply them; the daemons write files and units themselves. */
export const standardMode: TourStep = {
  title: 'Standard mode: the node daemons apply the MachineConfigs in examples/',
  async run(tour) {
    const files = (await readdir(EXAMPLES)).filter((file) => file.endsWith('.yaml')).sort();
    const workerConfigs = (await readExamples(...files))
      .filter(({ kind, metadata }) => kind === 'MachineConfig' && metadata.name.includes('worker'))
      .map(({ metadata }) => metadata.name);
    const rolledOut = await rollOut(tour, {
      what: "every node has the examples' files, units and kernel arguments",
      mode: 'Standard',
      act: () => tour.applyExamples(...files),
      missingInConfig: ({ spec }) => {
        const sources = spec.configuration?.source?.map(({ name }) => name) ?? [];
        const missing = workerConfigs.filter((name) => !sources.includes(name));
        return missing.length === 0 ? undefined : `not rendered yet: ${missing.join(', ')}`;
      },
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

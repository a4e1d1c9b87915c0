import { POOLS, ROLLOUT_WORKLOADS, readDisks } from '../roll-out.ts';
import { lookAtRollout } from '../rollout-look.ts';
import type { TourStep } from '../step.ts';

/** Nodes boot the stock image, and report that they run what their pool asks for. */
export const clusterUp: TourStep = {
  title: 'Cluster up: API server, registry, stock OS image, 3 worker nodes and 1 infra node',
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

import type { ConfigMap } from '../../../../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, DEFAULT_NAMESPACE, SWITCH_CONFIG_MAP } from '../../../../api/names.ts';
import { expectOneAtATime, expectOneReboot, expectRunningText } from '../expect-nodes.ts';
import { buildOf, POOLS, rollOut, sameConfig } from '../roll-out.ts';
import type { TourContext, TourStep } from '../step.ts';

/** @returns the switch as an admin writes it. */
export function switchConfigMap(tour: TourContext, enabled: boolean): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
    data: { enabled: String(enabled), imageRepository: `${tour.record.registryHost}/os/{pool}` },
  };
}

/** The opt-in: a builder, an image for each pool, and every node on its pool's image after one reboot. */
export const switchOn: TourStep = {
  title: 'Switch on: an image for each pool is built and rolled out',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: "every node runs its pool's image",
      mode: 'Layered',
      act: () => tour.apply([switchConfigMap(tour, true)]),
      missingInConfig: sameConfig,
    });
    const builder = tour.view.deployments.get(BUILDER_DEPLOYMENT, DEFAULT_NAMESPACE);
    tour.check('the Machine OS Builder runs', builder?.status?.availableReplicas === 1, builder?.status);
    for (const pool of Object.keys(POOLS)) {
      const image = buildOf(tour, pool).status?.digestedImagePushSpec;
      const booted = rolledOut.nodes
        .filter(({ object }) => object.spec.pool.name === pool)
        .map(({ after }) => after.booted.image);
      tour.check(
        `the nodes of ${pool} booted the image of its MachineOSBuild, by digest`,
        booted.every((name) => name === image),
        { image, booted },
      );
    }
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'ntp1.example.org');
  },
};

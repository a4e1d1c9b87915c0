import type { ConfigMap } from '../../../../api/kubernetes.ts';
import { MachineConfigs } from '../../../../api/machine-config.ts';
import {
  BUILDER_DEPLOYMENT,
  DEFAULT_NAMESPACE,
  OPERATOR_DEPLOYMENT,
  SWITCH_CONFIG_MAP,
} from '../../../../api/names.ts';
import { present } from '../../../../api/present.ts';
import { parseReference } from '../../../../image/reference.ts';
import { RegistryError } from '../../../../image/registry/registry-error.ts';
import { STOCK_CONFIG } from '../../cluster-objects.ts';
import {
  expectNoDisturbance,
  expectNoReboot,
  expectOneAtATime,
  expectOneReboot,
  expectRunningText,
} from '../expect-nodes.ts';
import { buildOf, POOLS, rollOut, sameConfig } from '../roll-out.ts';
import type { TourContext, TourStep } from '../step.ts';

/** @returns the switch as an admin writes it. */
function switchConfigMap(tour: TourContext, enabled: boolean): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
    data: {
      enabled: String(enabled),
      imageRepository: `${tour.record.registryHost}/os/{pool}`,
      ...present({ pullSecret: tour.secrets.pull, pushSecret: tour.secrets.push }),
    },
  };
}

/** The opt-in: a builder, an image for each pool, and every node on its pool's image, whose content it has already. */
export const switchOn: TourStep = {
  title:
    'Enable layering: build an image for each pool; its nodes have the content already and need no reboot',
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
      const next = rolledOut.nodes
        .filter(({ object }) => object.spec.pool.name === pool)
        .map(({ after }) => after.next.image);
      tour.check(
        `the next boot of the nodes of ${pool} is the image of its MachineOSBuild, by digest`,
        next.every((name) => name === image),
        { image, next },
      );
    }
    expectNoReboot(tour, rolledOut);
    expectNoDisturbance(tour, rolledOut);
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'ntp1.example.org');
  },
};

/** The way back: stock image, standard mode, and nothing left of what layering made. */
export const switchOff: TourStep = {
  title: 'Disable layering: nodes return to the stock image, and everything that layering created is deleted',
  async run(tour) {
    const { view } = tour;
    const images = view.builds
      .list()
      .flatMap(({ status }) => [status?.digestedImagePushSpec, status?.engineImage])
      .filter((image) => image !== undefined);
    const rolledOut = await rollOut(tour, {
      what: 'every node runs the stock image again',
      mode: 'Standard',
      act: () => tour.apply([switchConfigMap(tour, false)]),
      missingInConfig: sameConfig,
    });
    const { spec } = await tour.client.get(MachineConfigs, STOCK_CONFIG, { signal: tour.signal });
    tour.check(
      'every node booted the stock image',
      rolledOut.nodes.every(({ after }) => after.booted.image === spec.osImageURL),
      rolledOut.nodes.map(({ after }) => after.booted.image),
    );
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'without the retired one');
    await tour.until('everything that layering created is deleted', () => {
      const left = leftovers(tour);
      return left.length === 0 ? { met: true } : { seen: `not deleted yet: ${left.join(', ')}` };
    }, [OPERATOR_DEPLOYMENT]);
    const kept = await Promise.all(images.map((image) => isInRegistry(tour, image)));
    tour.check(
      `all ${images.length} images were deleted from the registry`,
      kept.every((there) => !there),
      images.filter((_, index) => kept[index]),
    );
  },
};

function leftovers({ view }: TourContext): string[] {
  const builder = view.deployments.get(BUILDER_DEPLOYMENT, DEFAULT_NAMESPACE);
  const pods = view.pods.list().filter(({ metadata }) => metadata.name.startsWith(BUILDER_DEPLOYMENT));
  return [builder, ...pods, ...view.machineOSConfigs.list(), ...view.builds.list()].flatMap((object) =>
    object === undefined ? [] : `${object.kind} ${object.metadata.name}`,
  );
}

async function isInRegistry({ registry, signal }: TourContext, image: string): Promise<boolean> {
  try {
    await registry.getManifest(parseReference(image), signal);
    return true;
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return false;
    throw error;
  }
}

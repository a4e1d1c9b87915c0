import { setTimeout as delay } from 'node:timers/promises';
import type { ConfigMap } from '../../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { PUSHED_IMAGES_CONFIG_MAP } from '../../../api/names.ts';
import { strayDigests } from '../../../cli/doctor/stray-images.ts';
import { parseReference } from '../../../image/reference.ts';
import { manifestAt } from '../../../image/referrers.ts';
import { readPushedImages } from '../../../opt-in/pushed-images/record.ts';
import { deadline } from '../../fixtures/patience.ts';
import type { World } from './world.ts';

/** ms between two looks, and for which strays may be left: the operator is deleting them. */
const LOOK_MS = 1_000;
const PRUNE_MS = 60_000;

/**
 * Compares the registry with what the cluster records, as `shale doctor` does.
 *
 * @param pools whose repositories are looked at.
 * @returns the images that no object explains, with what names them, once there are none or the time for that is over.
 */
export async function findLeaks(world: World, pools: readonly string[]): Promise<readonly string[]> {
  const end = deadline(PRUNE_MS);
  for (;;) {
    const strays = (await Promise.all(pools.map((pool) => straysOf(world, pool)))).flat();
    if (strays.length === 0 || end.aborted) return strays;
    await delay(LOOK_MS);
  }
}

async function straysOf({ cluster: { registry }, observer }: World, pool: string): Promise<string[]> {
  const repository = `${registry.host}/os/${pool}`;
  const at = parseReference(repository);
  const signal = deadline(PRUNE_MS);
  const tags = await registry.client.listTags(at, signal);
  const digests = new Map<string, string>();
  for (const tag of tags.filter((each) => !each.startsWith('sha256-'))) {
    const manifest = await manifestAt(registry.client, { ...at, tag }, signal);
    if (manifest !== undefined) digests.set(tag, manifest.digest);
  }
  // Read after the registry: what is recorded is recorded before it is pushed.
  const builds = observer.cluster.list<MachineOSBuild>('MachineOSBuild');
  const machineConfigNodes = observer.cluster.list<MachineConfigNode>('MachineConfigNode');
  const configMaps = observer.cluster.list<ConfigMap>('ConfigMap');
  const leftImages = readPushedImages(
    configMaps.find(({ metadata }) => metadata.name === PUSHED_IMAGES_CONFIG_MAP),
  );
  const strays = strayDigests({ repository, tags, digests }, { builds, machineConfigNodes, leftImages });
  return [...strays].map(([digest, named]) => `${repository}@${digest} (${named.join(', ')})`);
}

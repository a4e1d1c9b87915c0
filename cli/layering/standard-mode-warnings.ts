import { MachineConfigs } from '../../api/machine-config.ts';
import { noun } from '../../api/plural.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { nodeConfigOf } from '../../rollout/rendering/foreseen.ts';
import { unlessForbidden } from '../change/live-cluster.ts';
import { refusalInWords, refusingNodes } from '../change/refusing-nodes.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';

/**
 * @param pools that go back to standard mode.
 * @returns a line for nodes that can't take their pool's config without an image: they stay on theirs. @throws ApiError
 */
export async function standardModeWarnings(
  client: ApiClient,
  { pools: all, machineConfigNodes, nodes }: ObservedCluster,
  pools: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const targets = all.filter(({ metadata }) => pools.includes(metadata.name));
  const warnings = targets.map(async ({ metadata: { name }, spec }) => {
    const target = spec.configuration?.name;
    const rendered =
      target === undefined
        ? undefined
        : await unlessForbidden(client.find(MachineConfigs, target, { signal }));
    const config = nodeConfigOf(rendered);
    if (rendered === undefined || config === undefined) return [];
    const seen = { machineConfigNodes, nodes, rendered: new Map() };
    return refusingNodes(seen, { pool: name, rendered, config }).map(
      (refusing) =>
        `pool ${name}: ${refusalInWords(refusing)}; until that is fixed, ${noun(refusing.nodes.length, 'the node stays', 'the nodes stay')} on the image`,
    );
  });
  return (await Promise.all(warnings)).flat();
}

import { MachineConfigs } from '../../api/machine-config.ts';
import { noun } from '../../api/plural.ts';
import { readRegistryAccess, SecretError } from '../../builder/secrets.ts';
import { type ApiClient, ApiError, isTemporary } from '../../cluster/api-client.ts';
import { formatRefusal, refusingNodes } from '../../predict/node/refusing-nodes.ts';
import { readableNodeConfig } from '../../predict/objects/readable-node-config.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';

/**
 * Checks the Secrets that builds need. Another admin may create them later, so a problem is a warning and doesn't prevent
 * layering from being enabled.
 *
 * @returns a line for each Secret that can't be used, with its fix. @throws {ApiError}
 */
export async function secretWarnings(
  client: ApiClient,
  namespace: string,
  secrets: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const named = [...new Set(secrets.filter((name) => name !== undefined && name !== ''))] as string[];
  const lines = await Promise.all(named.map((name) => warningOf(client, namespace, name, signal)));
  return lines.filter((line) => line !== undefined);
}

async function warningOf(
  client: ApiClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await readRegistryAccess({ client, namespace, plainHttp: new Set() }, { names: [name] }, signal);
    return undefined;
  } catch (error) {
    if (error instanceof SecretError) {
      return `${error.message}; builds wait for it. To create it: kubectl -n ${namespace} create secret docker-registry ${name}`;
    }
    // Enabling layering doesn't require permission to read Secrets.
    if (error instanceof ApiError && error.status === 403) return undefined;
    // The switch is written already.
    if (isTemporary(error))
      return `Secret ${namespace}/${name} can't be checked: ${(error as Error).message}`;
    throw error;
  }
}

/**
 * @param pools that return to standard mode.
 * @returns a line for nodes that can't apply their pool's config without an image and stay on it. @throws {ApiError}
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
    const config = readableNodeConfig(rendered);
    if (rendered === undefined || config === undefined) return [];
    const cluster = { machineConfigNodes, nodes, rendered: new Map() };
    return refusingNodes(cluster, { pool: name, rendered, config }).map(
      (refusing) =>
        `pool ${name}: ${formatRefusal(refusing)}; until that is fixed, ${noun(refusing.nodes.length, 'the node stays', 'the nodes stay')} on the image`,
    );
  });
  return (await Promise.all(warnings)).flat();
}

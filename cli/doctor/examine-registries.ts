import { randomBytes } from 'node:crypto';
import { ConfigMaps, Pods, Secrets, ServiceAccounts } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import {
  BUILDER_DEPLOYMENT,
  NODE_PULL_SECRET,
  OPERATOR_DEPLOYMENT,
  PUSHED_IMAGES_CONFIG_MAP,
} from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { readPushedImages } from '../../opt-in/pushed-images/record.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import { UsageError } from '../command-line/exit-codes.ts';
import type { RegistryFlags } from '../command-line/registry-flags.ts';
import { type RegistryTrial, tryRegistries } from './check-registries.ts';
import { type Finding, findings } from './finding.ts';
import { findMissing } from './missing-images.ts';
import { flagValues } from './operator-flags.ts';
import { formatPlace, type ProbePlace, runProbe } from './probe/run-probe.ts';
import {
  builderTargets,
  nodeTargets,
  type PlannedRegistry,
  type RegistryTarget,
} from './registry-targets.ts';
import { findStrays } from './stray-images.ts';

export interface RegistryExamination extends RegistryFlags, PlannedRegistry {
  readonly namespace: string;
  /** Whether to test also from pods; or the names of the nodes to test from. */
  readonly probe?: true | readonly string[];
}

/**
 * Tests the registries of all pools: from this machine and, with `--probe`, from where the builder and the nodes are.
 *
 * @throws CommandError for flags that can't be used; ApiError.
 */
export async function examineRegistries(
  client: ApiClient,
  cluster: ObservedCluster,
  flags: RegistryExamination,
  signal: AbortSignal,
): Promise<Finding[]> {
  const targets = builderTargets(cluster, await baseImages(client, cluster, signal), flags);
  if (targets.length === 0) {
    const how =
      'layering is disabled, so no registry is needed yet; to test one in advance: shale doctor --image-repository …';
    return [findings('registries').ok(how)];
  }
  const { namespace } = flags;
  const plainHttp = [...flagValues(cluster.operator, '--insecure-registry'), ...flags.plainHttp];
  const trial = { client, namespace, flags: { ...flags, plainHttp }, from: 'this machine', signal };
  const tried = await tryRegistries(targets, trial);
  // A registry that can't be read or pushed to is reported once.
  const isUsable = tried.every(({ level }) => level === 'ok');
  const leftImages = readPushedImages(
    await unlessForbidden(client.find(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP, { namespace, signal })),
  );
  const strays = isUsable ? await findStrays(targets, { ...cluster, leftImages }, trial) : [];
  const missing = isUsable ? await findMissing(targets, cluster, trial) : [];
  const here = [...withoutBase(targets), ...tried, ...missing, ...strays];
  if (flags.probe === undefined) return here;
  return [...here, ...(await probeAll(trial, targets, cluster, flags.probe))];
}

/** @throws CommandError for a node to probe from that the cluster doesn't have. */
export function refuseUnknownNodes(
  { probe }: Pick<RegistryExamination, 'probe'>,
  { nodes }: Pick<ObservedCluster, 'nodes'>,
): void {
  if (probe === undefined || probe === true) return;
  const known = new Set(nodes.map(({ metadata }) => metadata.name));
  const unknown = probe.filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  throw new UsageError(`--probe: no node is named ${unknown.join(' or ')}`);
}

function withoutBase(targets: readonly RegistryTarget[]): Finding[] {
  const { failure } = findings('registries');
  const fix = 'set one with shale enable --base-image, or osImageURL in a MachineConfig';
  return targets
    .filter(({ pull }) => pull === undefined)
    .map(({ pool }) => failure(`pool ${pool} has no base image`, fix));
}

async function probeAll(
  { client, namespace, flags: { plainHttp }, signal }: RegistryTrial,
  targets: readonly RegistryTarget[],
  cluster: ObservedCluster,
  probe: true | readonly string[],
): Promise<Finding[]> {
  const image = cluster.operator?.spec.template.spec.containers[0]?.image;
  if (image === undefined) {
    const fix = 'kubectl apply -k manifests/base';
    return [
      findings('registries').warning(
        'no probe pod can be created: without an operator, the image of Shale is unknown',
        fix,
      ),
    ];
  }
  const secret = await unlessForbidden(client.find(Secrets, NODE_PULL_SECRET, { namespace, signal }));
  const ofNodes = nodeTargets(targets, cluster, secret === undefined ? [] : [NODE_PULL_SECRET]);
  const nodes = probe === true ? oneNodeOfEach(targets, cluster) : probe;
  const places: readonly (readonly [ProbePlace, readonly RegistryTarget[]])[] = [
    [await builderPlace(client, namespace, signal), targets],
    ...nodes.map((node) => [{ kind: 'node', node }, ofPoolOf(node, ofNodes, cluster)] as const),
  ];
  const probes = places.map(([place, of]) => {
    if (of.length === 0) return nothingToTry(place);
    const name = `shale-probe-${randomBytes(4).toString('hex')}`;
    return runProbe(client, { place, name, namespace, image, targets: of, plainHttp }, signal);
  });
  return (await Promise.all(probes)).flat();
}

/** Before layering is enabled there is no builder: the operator reads the same Secrets and is in the same network. */
async function builderPlace(client: ApiClient, namespace: string, signal: AbortSignal): Promise<ProbePlace> {
  const builder = await unlessForbidden(
    client.find(ServiceAccounts, BUILDER_DEPLOYMENT, { namespace, signal }),
  );
  const account = builder === undefined ? OPERATOR_DEPLOYMENT : BUILDER_DEPLOYMENT;
  const pods = await unlessForbidden(client.list(Pods, { namespace, signal }));
  const pod = pods?.items.find(
    ({ spec, status }) => spec.serviceAccountName === account && status?.phase === 'Running',
  );
  const node = pod?.spec.nodeName;
  return { kind: 'builder', account, node };
}

function nothingToTry(place: ProbePlace): Finding[] {
  const { warning } = findings(`registries, from ${formatPlace(place)}`);
  return [warning('this node belongs to no layered pool', 'specify a node of a layered pool')];
}

/** The nodes of a pool are usually in one network; other nodes can be named with `--probe`. */
function oneNodeOfEach(targets: readonly RegistryTarget[], cluster: ObservedCluster): readonly string[] {
  const ready = new Set(cluster.nodes.filter(isReady).map(({ metadata }) => metadata.name));
  return targets.flatMap(({ pool }) => {
    const members = nodesOfPool(cluster, pool).map(({ metadata }) => metadata.name);
    return members.find((name) => ready.has(name)) ?? members[0] ?? [];
  });
}

function ofPoolOf(
  node: string,
  targets: readonly RegistryTarget[],
  { machineConfigNodes }: ObservedCluster,
): readonly RegistryTarget[] {
  const pool = machineConfigNodes.find(({ metadata }) => metadata.name === node)?.spec.pool.name;
  return targets.filter((target) => target.pool === pool);
}

/** @returns the OS images that MachineConfigs specify, by pool. */
async function baseImages(
  client: ApiClient,
  { pools }: ObservedCluster,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const images = pools.map(async ({ metadata, spec }): Promise<readonly (readonly [string, string])[]> => {
    const name = spec.configuration?.name;
    const rendered: MachineConfig | undefined =
      name === undefined ? undefined : await client.find(MachineConfigs, name, { signal });
    const image = rendered?.spec.osImageURL;
    return image === undefined || image === '' ? [] : [[metadata.name, image]];
  });
  return new Map((await Promise.all(images)).flat());
}

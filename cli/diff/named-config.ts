import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { machineConfigsOf } from '../../predict/objects/cluster-state.ts';
import type { LiveCluster } from '../change/live-cluster.ts';
import { UsageError } from '../command-line/exit-codes.ts';

/** A config and, if it is known, the base image of its image. */
export interface Side {
  readonly config: MachineConfig;
  readonly baseImage?: string | undefined;
}

/** Of a pool or node: what it runs, or its target. A pool runs the last config that all of its nodes took. */
type Moment = 'runs' | 'is to run';

/** An object that a name refers to, with the type of kubectl's TYPE/NAME. */
type Named =
  | { readonly type: 'machineconfig'; readonly config: MachineConfig }
  | { readonly type: 'pool'; readonly pool: MachineConfigPool }
  | { readonly type: 'node'; readonly node: MachineConfigNode };

export type NamingCluster = Pick<LiveCluster, 'objects' | 'rendered' | 'machineConfigNodes' | 'builds'>;

/** @returns what a pool or node runs, and its target. @throws {CommandError} */
export function bothSides(name: string, cluster: NamingCluster): readonly [Side, Side] {
  const named = find(name, cluster);
  if (named.type === 'machineconfig') {
    throw new UsageError(
      `diff: ${name} is a MachineConfig: expected another one to compare it with, or one pool or node`,
    );
  }
  return [sideOf(name, named, cluster, 'runs'), sideOf(name, named, cluster, 'is to run')];
}

/**
 * @param name of a MachineConfig, a pool or a node; `pool/NAME` when it is ambiguous.
 * @returns for a node what it runs, for a pool what its MachineConfigs specify.
 * @throws {CommandError}
 */
export function oneSide(name: string, cluster: NamingCluster): Side {
  const named = find(name, cluster);
  return sideOf(name, named, cluster, named.type === 'node' ? 'runs' : 'is to run');
}

function find(given: string, { objects, rendered, machineConfigNodes }: NamingCluster): Named {
  const [, type, name = given] = /^(machineconfig|pool|node)\/(.*)$/.exec(given) ?? [];
  const isNamed = ({ metadata }: KubernetesObject) => metadata.name === name;
  const isPool = (object: KubernetesObject): object is MachineConfigPool =>
    object.kind === MachineConfigPools.kind;
  // In files, the last object of a name is used.
  const config = [...machineConfigsOf(objects), ...rendered.values()].findLast(isNamed);
  const pool = objects.filter(isPool).find(isNamed);
  const node = machineConfigNodes.find(isNamed);
  const all: readonly Named[] = [
    ...(config === undefined ? [] : [{ type: 'machineconfig' as const, config }]),
    ...(pool === undefined ? [] : [{ type: 'pool' as const, pool }]),
    ...(node === undefined ? [] : [{ type: 'node' as const, node }]),
  ];
  const candidates = all.filter((candidate) => type === undefined || candidate.type === type);
  const [only, ...more] = candidates;
  if (only === undefined) {
    throw new UsageError(`${given} is not a MachineConfig, pool or node, and no such file exists`);
  }
  if (more.length === 0) return only;
  const names = candidates.map((candidate) => `${candidate.type}/${name}`).join(' or ');
  throw new UsageError(`${given} is ambiguous; expected ${names}`);
}

function sideOf(given: string, named: Named, cluster: NamingCluster, moment: Moment): Side {
  if (named.type === 'machineconfig') return named;
  const { configName, baseImage } = targetOf(named, cluster, moment);
  if (configName === '') {
    throw new UsageError(
      moment === 'runs'
        ? `${named.type} ${given} has not reported a rendered config yet`
        : `${named.type} ${given} has no target yet`,
    );
  }
  const config = cluster.rendered.get(configName);
  if (config === undefined) {
    throw new UsageError(
      `${configName}, ${moment === 'runs' ? 'which' : 'the target of'} ${named.type} ${given}${moment === 'runs' ? ' runs' : ''}, no longer exists`,
    );
  }
  return { config, baseImage };
}

/** @returns the target; its config is '' when there is none. */
function targetOf(
  named: Exclude<Named, { readonly type: 'machineconfig' }>,
  { builds }: NamingCluster,
  moment: Moment,
): { readonly configName: string; readonly baseImage?: string | undefined } {
  if (named.type === 'pool') {
    const { spec, status } = named.pool;
    return { configName: (moment === 'runs' ? status : spec)?.configuration?.name ?? '' };
  }
  const { spec, status } = named.node;
  if (moment === 'runs') {
    return { configName: status?.configVersion?.current ?? '', baseImage: status?.baseImage };
  }
  const image = spec.configImage?.desiredImage;
  const build = image && builds.find(({ status: made }) => made?.digestedImagePushSpec === image);
  return { configName: spec.configVersion.desired, baseImage: build ? build.status?.baseImage : undefined };
}

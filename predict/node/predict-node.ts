import { outcomeOf } from '../../api/build-outcome.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { isByDigest } from '../../api/references.ts';
import { type Decision, decideActions } from '../../disruption/actions.ts';
import { imageRebootsBecause } from '../../disruption/image-reboots.ts';
import { baseImagesOf } from '../../disruption/label-coverage.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { type Cost, costOf } from '../cost.ts';
import { imagesOfBase } from '../image/base-lookup.ts';
import { baseOf, type ImageInputs, requestedBase } from '../image/image-inputs.ts';
import { decideSwitchOn, type LayeredPool, mayNeedEngine, optInOf } from '../image/layered-pool.ts';
import { readableNodeConfig } from '../objects/cluster-state.ts';

/** Where the nodes of a pool go. What a node does depends on every field, so none is optional. */
export interface PredictionTarget {
  /** What the rendered config specifies. */
  readonly config: NodeConfig;
  readonly policies: ClusterPolicies;
  /** What the image gives nodes; undefined where the target is standard mode. */
  readonly layered: LayeredPool | undefined;
  /**
   * @returns the base images between which a node moves that keeps its mode; undefined where only the configs are
   * known.
   */
  readonly basesOf: (node: MachineConfigNodeStatus) => NodeBases | undefined;
  /** The rendered configs of the cluster, by name. */
  readonly rendered: ReadonlyMap<string, MachineConfig>;
}

/** What one node does to reach the target of its pool. `why`: a full clause. */
export type NodePrediction =
  /** Its host is not supported, so it keeps what it runs. */
  | { readonly kind: 'keeps'; readonly why: string }
  | { readonly kind: 'arrived' }
  | { readonly kind: 'acts'; readonly decision: Decision }
  | { readonly kind: 'reboots'; readonly why: string }
  /** What it runs is not known, so that it reboots. */
  | { readonly kind: 'unknown'; readonly why: string };

export interface PredictedNode {
  readonly node: MachineConfigNode;
  readonly prediction: NodePrediction;
}

/**
 * Predicts what one node does to reach a target. Plan, enable, disable, rollback and try all use this function, and it
 * uses those by which builder and daemon decide, so that none promises what another doesn't.
 */
export function predictNode({ spec, status }: MachineConfigNode, target: PredictionTarget): NodePrediction {
  const unsupported = unsupportedBecause({ status });
  if (unsupported !== undefined) return { kind: 'keeps', why: unsupported };
  const current = status?.configVersion?.current ?? '';
  if (status === undefined || current === '') return unknown('it has not reported what it runs');
  const { config, layered } = target;
  if (layered !== undefined && status.mode === 'Standard') {
    const optIn = optInOf({ status }, layered);
    return optIn.kind === 'equal'
      ? { kind: 'acts', decision: decideSwitchOn(config) }
      : { kind: 'reboots', why: optIn.why };
  }
  if (layered === undefined && status.mode === 'Layered')
    return { kind: 'reboots', why: 'it returns to the stock image' };
  if (spec.configImage !== undefined && status.mode !== 'Layered')
    return unknown('it has not switched to its image yet');
  if (spec.configImage === undefined && status.mode === 'Layered')
    return unknown('it has not returned to the stock image yet');
  const from = current === config.name ? config : readableNodeConfig(target.rendered.get(current));
  if (from === undefined) return unknown(`its rendered config ${current} does not exist or can't be read`);
  return move(from, status, target);
}

/** The node keeps its mode, and both configs are known. */
function move(
  from: NodeConfig,
  status: MachineConfigNodeStatus,
  { config, policies, layered, basesOf }: PredictionTarget,
): NodePrediction {
  const bases = basesOf(status);
  if (config.name === from.name && bases?.fromBase === bases?.toBase) return { kind: 'arrived' };
  const never = layered === undefined ? undefined : imageRebootsBecause(status.osBackend);
  if (never !== undefined) return { kind: 'reboots', why: never };
  const how = { policies, layered: layered !== undefined, ...bases };
  return { kind: 'acts', decision: decideActions({ from, to: config, ...how }) };
}

function unknown(why: string): NodePrediction {
  return { kind: 'unknown', why };
}

/** @returns what a prediction costs the node. */
export function costOfPrediction(prediction: NodePrediction): Cost {
  switch (prediction.kind) {
    case 'keeps':
    case 'arrived':
      return 'nothing';
    case 'acts':
      return costOf(prediction.decision);
    case 'reboots':
    case 'unknown':
      return 'reboot';
  }
}

/** The base images between which a node moves, as far as the cluster's objects tell. */
export interface NodeBases {
  readonly fromBase: string;
  readonly toBase: string;
}

/**
 * The base image that one node of a pool has, and the one that it will have. Nodes that are behind have another than
 * the pool's last rendered config asks for, so that for them a change of nothing else is a reboot.
 *
 * A requested base may be an index, of which each architecture has an image of its own: a build that was made on it
 * says which those are, and so does the registry where a tag was looked up.
 *
 * @param builds of the pool.
 * @returns undefined where they are not known; what the pool's two renderings say decides then.
 */
export function nodeBases(
  node: MachineConfigNodeStatus,
  to: ImageInputs,
  builds: readonly MachineOSBuild[],
): NodeBases | undefined {
  const { rendered, machineOSConfig } = to;
  const { baseImage: fromBase, mode } = node;
  if (fromBase === undefined || rendered === undefined) return undefined;
  if (machineOSConfig === undefined) {
    // Without an osImageURL the node keeps the system that it has.
    return mode === 'Standard' ? { fromBase, toBase: rendered.spec.osImageURL || fromBase } : undefined;
  }
  // The base that such a node reports is what the container engine made, and no object says of which image.
  if (mode !== 'Layered' || mayNeedEngine(machineOSConfig.spec, rendered, ['amd64', 'arm64']))
    return undefined;
  const [requested, base] = [requestedBase(machineOSConfig, rendered), baseOf(to)];
  if (requested === undefined || base === undefined || !isByDigest(base)) return undefined;
  const built = builds
    .filter(({ spec }) => spec.baseImage === base)
    .filter((build) => outcomeOf(build) === 'Succeeded')
    .flatMap((build) => [...baseImagesOf(build)])
    .filter((base) => base !== undefined);
  const images = [...imagesOfBase(requested, to.lookups), ...built];
  const [toBase] = images;
  if (toBase === undefined) return undefined;
  return { fromBase, toBase: images.includes(fromBase) ? fromBase : toBase };
}

/**
 * @returns why a node's daemon supports none of the tools that keep the host's operating system, as the daemon reports
 *   it (daemon/os/detect-backend.ts): such a node keeps what it runs. Undefined for any other node.
 */
export function unsupportedBecause({
  status,
}: {
  readonly status?: MachineConfigNodeStatus | undefined;
}): string | undefined {
  const degraded = status?.conditions?.find(({ type }) => type === 'NodeDegraded');
  return degraded?.status === 'True' && degraded.reason === 'UnsupportedHost'
    ? (degraded.message ?? '')
    : undefined;
}

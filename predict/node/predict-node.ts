import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { type Decision, decideActions } from '../../disruption/actions.ts';
import { imageRebootsBecause } from '../../disruption/image-reboots.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { type Cost, costOf } from '../cost.ts';
import { type LayeredPool, optInOf } from '../image/layered-pool.ts';
import { readableNodeConfig } from '../objects/readable-node-config.ts';
import type { NodeBases } from './node-base.ts';
import { decideSwitchOn } from './switched-on.ts';
import { unsupportedBecause } from './unsupported-host.ts';

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

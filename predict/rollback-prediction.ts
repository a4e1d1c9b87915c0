import { formatActions } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { by } from '../api/order.ts';
import { baseImagesOf } from '../disruption/label-coverage.ts';
import { isAtLeast } from './cost.ts';
import type { LayeredPool } from './image/layered-pool.ts';
import {
  costOfPrediction,
  type NodeBases,
  type NodePrediction,
  nodeBases,
  predictNode,
} from './node/predict-node.ts';
import { readableNodeConfig } from './objects/cluster-state.ts';

/** What a prediction for the nodes of a pool is made from. */
export interface RollbackPredictionInput {
  /** The rendered config that the pool goes to. */
  readonly config: string;
  /** The build of its image; undefined in standard mode. */
  readonly build: MachineOSBuild | undefined;
  /** Of the pool. */
  readonly nodes: readonly MachineConfigNode[];
  readonly machineConfigs: readonly MachineConfig[];
  /** The policies in force. */
  readonly policies: ClusterPolicies;
}

/** Nodes that do the same. */
export interface NodesAlike {
  /** Whether they are drained or reboot. */
  readonly disrupts: boolean;
  /** Whether they wait for the image to be labelled again, so that they need no reboot. */
  readonly waitsForLabel: boolean;
  /** What they do and why, to follow their number, as text. */
  readonly what: string;
  /** In order. */
  readonly nodes: readonly string[];
}

/**
 * Predicts what the nodes of a pool do to reach an image or config that exists, by the function that decides it in the
 * image's label: so it holds whatever the label lists now, if the builder can label the image again.
 */
export function predictRollback(input: RollbackPredictionInput): readonly NodesAlike[] {
  const predict = predictor(input);
  const predicted = input.nodes
    .toSorted(by(({ metadata }) => metadata.name))
    .map((node) => ({ name: node.metadata.name, prediction: predict(node) }));
  return [...Map.groupBy(predicted, ({ prediction }) => formatNodePrediction(prediction))].map(
    ([what, alike]) => ({
      disrupts: alike.some(({ prediction }) => isAtLeast(costOfPrediction(prediction), 'drain')),
      waitsForLabel: input.build !== undefined && alike.some(({ prediction }) => isLive(prediction)),
      what,
      nodes: alike.map(({ name }) => name),
    }),
  );
}

function isLive(prediction: NodePrediction): boolean {
  return prediction.kind === 'acts' && costOfPrediction(prediction) !== 'reboot';
}

function predictor({ config: name, build, machineConfigs, policies }: RollbackPredictionInput) {
  const rendered = new Map(machineConfigs.map((config) => [config.metadata.name, config]));
  const object = rendered.get(name);
  const config = readableNodeConfig(object);
  if (object === undefined || config === undefined) {
    const why = `rendered config ${name} does not exist or can't be read`;
    return (): NodePrediction => ({ kind: 'unknown', why });
  }
  const layered = build === undefined ? undefined : layeredByBuild(build);
  const standard = { rendered: object, machineOSConfig: undefined, policyDigest: '' };
  const basesOf = (status: MachineConfigNodeStatus): NodeBases | undefined =>
    build === undefined ? nodeBases(status, standard, []) : basesOfBuild(status, build);
  const target = { config, policies, layered, basesOf, rendered };
  return (node: MachineConfigNode) => predictNode(node, target);
}

function layeredByBuild(build: MachineOSBuild): LayeredPool {
  const { spec, status } = build;
  const images = [...baseImagesOf(build)].filter((base) => base !== undefined);
  const byEngine = status?.engineImage !== undefined;
  return { config: spec.machineConfig.name, base: status?.baseImage, images, byEngine };
}

function basesOfBuild({ baseImage = '' }: MachineConfigNodeStatus, build: MachineOSBuild): NodeBases {
  const bases = baseImagesOf(build);
  return {
    fromBase: baseImage,
    toBase: bases.has(baseImage) ? baseImage : (build.status?.baseImage ?? 'another base image'),
  };
}

/** @returns what a node does, to follow its number. */
function formatNodePrediction(prediction: NodePrediction): string {
  switch (prediction.kind) {
    case 'arrived':
      return 'with nothing to do';
    case 'keeps':
      return `with nothing to do (${prediction.why})`;
    case 'reboots':
    case 'unknown':
      return `by a reboot (${prediction.why})`;
    case 'acts': {
      const { actions, causes } = prediction.decision;
      const cost = costOfPrediction(prediction);
      if (cost !== 'reboot')
        return `without a reboot${cost === 'drain' ? ', drained' : ''} (${formatActions(actions)})`;
      const first = causes.find((cause) => cause.actions.some(({ type }) => type === 'Reboot'));
      const subject = first?.subject === 'baseImage' ? 'another base image' : first?.subject;
      return `by a reboot (${subject ?? formatActions(actions)})`;
    }
  }
}

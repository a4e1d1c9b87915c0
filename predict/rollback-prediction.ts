import { formatActions, isDisruptive } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { by } from '../api/order.ts';
import { plural } from '../api/plural.ts';
import { decideActions } from '../disruption/actions.ts';
import { baseImagesOf } from '../disruption/label-coverage.ts';
import { RELABEL_LIMIT } from '../rollout/pools/rollback.ts';
import { buildsOfSameContent } from '../rollout/pools/same-content.ts';
import { readableNodeConfig } from './rendering/predicted-transitions.ts';

/** What a prediction for the nodes of a pool is made from. */
export interface RollbackPredictionInput {
  /** The rendered config that the pool goes to. */
  readonly config: string;
  /** The build of its image; undefined in standard mode. */
  readonly build: MachineOSBuild | undefined;
  /** Of the pool. */
  readonly nodes: readonly MachineConfigNode[];
  /** Of the pool. */
  readonly builds: readonly MachineOSBuild[];
  readonly machineConfigs: readonly MachineConfig[];
  /** The policies in force. */
  readonly policies: ClusterPolicies;
}

/** Nodes that do the same. */
export interface PredictedNodes {
  readonly reboots: boolean;
  /** Whether they are drained or reboot. */
  readonly disrupts: boolean;
  /** What they do and why, to follow their number, as text. */
  readonly what: string;
  /** In order. */
  readonly nodes: readonly string[];
}

/**
 * Predicts what the nodes of a pool do to reach an image or config that exists, by the function that decides it in the
 * image's label: so it holds whatever the label lists now, if the builder can label the image again.
 */
export function predictNodes(input: RollbackPredictionInput): readonly PredictedNodes[] {
  const sorted = input.nodes.toSorted(by(({ metadata }) => metadata.name));
  const decided = sorted.map((node) => ({ name: node.metadata.name, ...decide(node, input) }));
  return [...Map.groupBy(decided, ({ what }) => what)].map(([what, alike]) => ({
    reboots: alike.some(({ reboots }) => reboots),
    disrupts: alike.some(({ disrupts }) => disrupts),
    what,
    nodes: alike.map(({ name }) => name),
  }));
}

/** Names in one line; a pool can have thousands. */
const NAMED_NODES = 10;

/** @returns one line for each group of nodes, and what they may wait for. */
export function formatPrediction(groups: readonly PredictedNodes[], isLayered: boolean): readonly string[] {
  const lines = groups.map(({ what, nodes }) => {
    const more = nodes.length > NAMED_NODES ? [`and ${nodes.length - NAMED_NODES} more`] : [];
    return `  ${plural(nodes.length, 'node')} ${what}: ${[...nodes.slice(0, NAMED_NODES), ...more].join(', ')}`;
  });
  return waitsForLabel(groups, isLayered)
    ? [
        ...lines,
        `  the builder labels the image for that; if it doesn't within ${RELABEL_LIMIT / 1000} s, these nodes reboot`,
      ]
    : lines;
}

/** @returns whether nodes are, or may be, drained or rebooted. */
export function mayDisrupt(groups: readonly PredictedNodes[], isLayered: boolean): boolean {
  return waitsForLabel(groups, isLayered) || groups.some(({ disrupts }) => disrupts);
}

/** Nodes that wait for a label reboot when it does not come in time. */
function waitsForLabel(groups: readonly PredictedNodes[], isLayered: boolean): boolean {
  return isLayered && groups.some(({ reboots, what }) => !reboots && what !== NOTHING);
}

const NOTHING = 'with nothing to do';

function decide(
  { status }: MachineConfigNode,
  { config, build, builds, machineConfigs, policies }: RollbackPredictionInput,
): Omit<PredictedNodes, 'nodes'> {
  const reboots = (why: string) => ({ reboots: true, disrupts: true, what: `by a reboot (${why})` });
  const current = status?.configVersion?.current ?? '';
  const base = status?.baseImage;
  if (current === '') return reboots('it has not reported what it runs');
  if (build !== undefined && status?.mode !== 'Layered') return reboots('from standard mode');
  if (build === undefined && status?.mode === 'Layered') return reboots('to the stock image');
  if (build !== undefined && current === config && runsImageOf(build, builds, status)) return nothing;
  if (build === undefined && current === config) return nothing;
  if (build !== undefined && (base === undefined || !baseImagesOf(build).has(base)))
    return reboots('another base image');
  const named = (name: string) =>
    readableNodeConfig(machineConfigs.find(({ metadata }) => metadata.name === name));
  const [from, to] = [named(current), named(config)];
  if (from === undefined) return reboots(`rendered config ${current} does not exist or can't be read`);
  if (to === undefined) return reboots(`rendered config ${config} does not exist or can't be read`);
  const bases = base === undefined || build === undefined ? {} : { fromBase: base, toBase: base };
  const { actions, causes } = decideActions({ from, to, policies, layered: build !== undefined, ...bases });
  if (actions.some(({ type }) => type === 'Reboot')) {
    const first = causes.find((cause) => cause.actions.some(({ type }) => type === 'Reboot'));
    return reboots(first?.subject ?? formatActions(actions));
  }
  const disrupts = isDisruptive(actions);
  const how = disrupts ? 'without a reboot, drained' : 'without a reboot';
  return { reboots: false, disrupts, what: `${how} (${formatActions(actions)})` };
}

const nothing = { reboots: false, disrupts: false, what: NOTHING } as const;

function runsImageOf(
  build: MachineOSBuild,
  builds: readonly MachineOSBuild[],
  status: MachineConfigNode['status'],
): boolean {
  const image = status?.configImage?.currentImage;
  return buildsOfSameContent(builds, build).some(({ status: of }) => of?.digestedImagePushSpec === image);
}

import type { DisruptionAction } from '../api/disruption-action.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { isByDigest } from '../api/references.ts';
import type { Decision } from '../disruption/actions.ts';
import { imageRebootsBecause } from '../disruption/image-reboots.ts';
import { type BaseContent, resolveInBase } from '../machineconfig/base-tree.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { limitedInStandardMode } from '../machineconfig/standard-mode.ts';
import { UNIT_DIRECTORIES } from '../machineconfig/units/unit-tree.ts';
import { costOf } from './cost.ts';
import type { BaseLookups, PoolTrees } from './image/base-lookup.ts';
import { type ImageInputs, requestedOf } from './image/image-inputs.ts';
import type { ImageToBuild } from './image/image-to-build.ts';
import { type IgnitionTarget, irreconcilableOnNewNodes } from './node/irreconcilable-nodes.ts';
import type { PredictedNode } from './node/predict-node.ts';
import { formatNodes } from './node/refusing-nodes.ts';
import type { PoolRenderings } from './pool-change.ts';

/** A pool's side of a plan, which warnings are found in. */
export interface PlanOfPool {
  readonly change: PoolRenderings;
  /** What the image is built from, before and after. */
  readonly was: ImageInputs;
  readonly will: ImageInputs;
  /** What registries answered about tags of base images. */
  readonly asked: BaseLookups;
  /** What is known of the base image after the change. */
  readonly base: ReturnType<PoolTrees['get']>;
  readonly image: ImageToBuild | undefined;
  readonly decision: Decision;
  /** The cluster's setting that stops all rollouts. */
  readonly suspension: string | undefined;
  readonly ignition: IgnitionTarget;
  /** The pool's; undefined without a cluster. */
  readonly nodes: readonly PredictedNode[] | undefined;
}

/** What delays a rollout, what is not known and, without a cluster, which hosts can't apply the change. */
const WARNINGS: readonly ((planned: PlanOfPool) => readonly string[])[] = [
  ({ image }) => image?.problems.map((problem) => `no image can be built: ${problem}`) ?? [],
  ({ was, will, asked }) => baseRemarks(was, will, asked),
  ({ base }) =>
    base?.kind === 'unknown' ? [`the config was not compared with what the base image has: ${base.why}`] : [],
  ({ base, decision, change: { before, after } }) =>
    base?.kind === 'answer' ? absentUnits(decision.actions, [before, after], base.value) : [],
  ({ suspension }) => (suspension === undefined ? [] : [suspension]),
  hostLimits,
  newNodeLimits,
  ({ image, decision, nodes = [] }) => imageReboots(image, decision, nodes.flatMap(nodeThatMoves)),
  ({ nodes = [] }) => nodes.flatMap(nodeRemarks),
];

/** @returns the warnings of a pool's plan, one line each. */
export function planWarnings(planned: PlanOfPool): readonly string[] {
  return WARNINGS.flatMap((warningsIn) => warningsIn(planned));
}

/** @returns why some hosts can't apply a config, when the nodes of the pool are unknown. */
function hostLimits({ nodes, will: { machineOSConfig, rendered }, change }: PlanOfPool): readonly string[] {
  if (nodes !== undefined || machineOSConfig !== undefined) return [];
  return limitedInStandardMode(change.after, rendered?.spec.baseOSExtensionsContainerImage ?? '');
}

/** @returns what new nodes of a new pool can't apply, when the nodes of the pool are unknown. */
function newNodeLimits({ nodes, change, ignition }: PlanOfPool): readonly string[] {
  if (nodes !== undefined || change.from !== undefined) return [];
  const why = irreconcilableOnNewNodes(ignition);
  return why === undefined ? [] : [why];
}

function nodeThatMoves({ node, prediction }: PredictedNode): readonly MachineConfigNode[] {
  return prediction.kind === 'keeps' ? [] : [node];
}

/** @returns what a plan can't tell of a node, or why it does nothing. */
function nodeRemarks({ node: { metadata }, prediction }: PredictedNode): readonly string[] {
  if (prediction.kind === 'unknown')
    return [`node ${metadata.name} is counted as a reboot: ${prediction.why}`];
  return prediction.kind === 'keeps' ? [`node ${metadata.name} keeps what it runs: ${prediction.why}`] : [];
}

/**
 * @param after with what is assumed of the tags. @param asked what registries answered, by name.
 * @returns what isn't known of a layered pool's base images, one line each.
 */
export function baseRemarks(
  before: ImageInputs,
  after: ImageInputs,
  asked: NonNullable<ImageInputs['lookups']>,
): readonly string[] {
  const [from, to] = [requestedOf(before), requestedOf(after)];
  if (to === undefined) return [];
  const names = [...new Set([from, to])].filter((name) => name !== undefined && !isByDigest(name));
  if (from === to) {
    const answer = asked.get(to);
    if (names.length === 0 || answer?.kind !== 'unknown') return [];
    return [
      `base image ${to} can't be looked up, so it is assumed that its tag was not moved: ${answer.why}`,
    ];
  }
  return names.flatMap((name = '') => {
    const lookup = (name === to ? after : before).lookups?.get(name);
    if (lookup?.kind === 'found') return [];
    const why = lookup?.why ?? 'no registry was asked (--resolve-tags asks)';
    return [`the digest of base image ${name} is not known, so a reboot is planned for it: ${why}`];
  });
}

/** Where systemd.unit(5) has units that a host keeps, and what systemd-sysv-generator(8) makes units of. */
const PLACES = [...UNIT_DIRECTORIES, '/lib/systemd/system'];

const SYSV = '/etc/init.d';

/**
 * A reload or restart of a unit that no host has fails on the first node, which reboots.
 *
 * @param configs before and after the change: what a change removes is stopped.
 * @returns a warning for each unit that actions name and that is nowhere.
 */
export function absentUnits(
  actions: readonly DisruptionAction[],
  configs: readonly NodeConfig[],
  base: BaseContent,
): readonly string[] {
  const named = actions.flatMap((action) => ('service' in action ? [action.service] : []));
  return [...new Set(named)]
    .filter((unit) => !namesOf(unit).some((name) => isThere(name, configs, base)))
    .map(
      (unit) =>
        `a policy names ${unit}, of which neither the config nor the base image has a unit file: unless something generates it, the first node reboots, and the rollout stops there`,
    );
}

/** An instance has the file of its template (systemd.unit(5)). */
function namesOf(unit: string): readonly string[] {
  const at = unit.indexOf('@');
  const type = unit.lastIndexOf('.');
  return at < 0 || type <= at + 1 ? [unit] : [unit, `${unit.slice(0, at + 1)}${unit.slice(type)}`];
}

function isThere(name: string, configs: readonly NodeConfig[], base: BaseContent): boolean {
  const places = [...PLACES.map((place) => `${place}/${name}`), `${SYSV}/${name.replace(/\.service$/, '')}`];
  return (
    configs.some(
      ({ units, files, links }) =>
        units.get(name)?.contents !== undefined || places.some((path) => files.has(path) || links.has(path)),
    ) ||
    places.some((path) => {
      const place = resolveInBase(base, path);
      return place.kind === 'place' && base.at(place.path) !== undefined;
    })
  );
}

/**
 * @param image that the change makes; undefined where it makes none. @param decision what the change itself asks.
 * @param nodes of its pool.
 * @returns which of them reboot for an image though the change asks for less; one line for each reason.
 */
export function imageReboots(
  image: ImageToBuild | undefined,
  decision: Decision,
  nodes: readonly MachineConfigNode[],
): readonly string[] {
  if (image === undefined || costOf(decision) === 'reboot') return [];
  const byReason = Map.groupBy(nodes, ({ status }) => imageRebootsBecause(status?.osBackend));
  return [...byReason].flatMap(([why, those]) =>
    why === undefined
      ? []
      : [
          `counted as a reboot: ${formatNodes(those.map(({ metadata }) => metadata.name).toSorted())}: ${why}`,
        ],
  );
}

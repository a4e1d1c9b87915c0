import { parseReboot } from '../../api/annotation-requests.ts';
import { outcomeOf } from '../../api/build-outcome.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { by } from '../../api/order.ts';
import { shortList } from '../../api/plural.ts';
import { type Cost, isAtLeast } from '../../predict/cost.ts';
import { costOfPlan, type PoolAsk, type PoolPrediction } from '../../predict/plan.ts';
import { type PartName, partKey } from '../mapping/machine-parts.ts';

/** What a change costs the nodes of a pool, as far as the prediction goes. */
export interface PredictedChange {
  readonly taken: readonly PartName[];
  readonly plan: PoolAsk;
  readonly prediction: Pick<PoolPrediction, 'layered' | 'nodes'>;
  /** Of the workload cluster. */
  readonly builds: readonly MachineOSBuild[];
  /** Objects of the workload cluster that can't be read, one line each. */
  readonly malformed: readonly string[];
}

/** Whether pods of a machine are affected by its update. `why`: a clause. */
export type Availability =
  | { readonly isAffected: false; readonly cost: Cost }
  | { readonly isAffected: true; readonly why: string };

/** How many names a message has. */
const NAMED = 5;

/**
 * Every reason to expect that pods are affected; with none of them the answer is no. Cluster API starts at once then,
 * without a spare machine, so whatever isn't known for certain counts as affecting.
 */
const REASONS: readonly ((change: PredictedChange) => string | undefined)[] = [
  ({ plan }) => {
    const cost = costOfPlan(plan);
    return isAtLeast(cost, 'drain') ? `nodes need a ${cost}` : undefined;
  },
  ({ taken }) => {
    const system = taken.find(({ kind }) => kind === 'image' || kind === 'version');
    return system && `the ${partKey(system)} changes`;
  },
  ({ malformed }) => first('objects of the workload cluster can not be read', malformed),
  ({ plan }) => first('the prediction has warnings', plan.warnings ?? []),
  ({ prediction: { nodes } }) => first('more than this change is due', nodes.flatMap(dueOn).toSorted()),
  (change) => first('no build is known of the image that nodes run', nodesOfUnknownImage(change)),
];

/** @returns whether pods are affected where nothing speaks against the change itself. */
export function availabilityOf(change: PredictedChange): Availability {
  for (const reason of REASONS) {
    const why = reason(change);
    if (why !== undefined) return { isAffected: true, why };
  }
  return { isAffected: false, cost: costOfPlan(change.plan) };
}

function first(what: string, lines: readonly string[]): string | undefined {
  return lines.length === 0 ? undefined : `${what}: ${shortList(lines, NAMED, '; ')}`;
}

/**
 * The gate holds back whatever disrupts a node of a driven pool, so a node that is handed over for this change does
 * what it has waited for, too.
 */
function dueOn({ node }: PredictedChange['prediction']['nodes'][number]): readonly string[] {
  const { metadata, status } = node;
  const isDegraded = status?.conditions?.some(
    ({ type, status: is }) => type === 'NodeDegraded' && is === 'True',
  );
  return [
    ...(isRebootDue(node) ? [`a reboot of node ${metadata.name} is requested`] : []),
    ...(status?.plan?.liveFailure === undefined
      ? []
      : [`node ${metadata.name} reboots because a live update failed`]),
    ...(isDegraded === true ? [`node ${metadata.name} has failed`] : []),
  ];
}

function isRebootDue({ metadata, status }: MachineConfigNode): boolean {
  const text = metadata.annotations?.[annotations.reboot];
  try {
    return text !== undefined && parseReboot(text).bootID === status?.bootID;
  } catch {
    // The daemon reports a request that can't be read, and doesn't carry it out.
    return false;
  }
}

/**
 * What a node does on its way to an image is a label of that image, which the builder computes from the records of
 * builds: of an image without one, it isn't known that there will be such a label.
 */
function nodesOfUnknownImage({ prediction: { layered, nodes }, builds }: PredictedChange): readonly string[] {
  if (layered === undefined) return [];
  const built = new Set(builds.filter((build) => outcomeOf(build) === 'Succeeded').flatMap(imagesOf));
  return nodes
    .filter(({ node: { status } }) => !built.has(status?.configImage?.currentImage ?? ''))
    .map(({ node }) => node.metadata.name)
    .toSorted(by((name) => name));
}

function imagesOf({ status }: MachineOSBuild): readonly string[] {
  const image = status?.digestedImagePushSpec;
  return image === undefined ? [] : [image];
}

import { outcomeOf } from '../api/build-outcome.ts';
import { isDisruptive } from '../api/disruption-action.ts';
import { formatDuration } from '../api/duration.ts';
import type { MachineConfigNode, UpdateRecord, UpdateTimes } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { formatDriver, type MachineOwner } from '../api/machine-owner.ts';
import { plural } from '../api/plural.ts';
import type { Cost } from './cost.ts';
import type { ImageToBuild } from './image/image-to-build.ts';
import { ofLatestRollout } from './latest-rollout.ts';

/** The time until every node of a pool runs a change, if it can be estimated. */
export interface Estimate {
  /** Absent when there is nothing to estimate from. */
  readonly seconds?: number;
  /** What the estimate is based on, or what is missing, as text. */
  readonly why: string;
}

interface EstimateInput {
  /** The number of the pool's nodes by cost. */
  readonly outcomes: Readonly<Record<Cost, number>>;
  /** The pool's. */
  readonly nodes: readonly MachineConfigNode[];
  /** How many of those that are drained or rebooted go one after another, whatever the pace; 0: nothing says so. */
  readonly rounds: number;
  /** The pool's. */
  readonly builds: readonly MachineOSBuild[];
  readonly image: ImageToBuild | undefined;
  /** Who else decides which nodes are updated and when. Absent: nobody. */
  readonly drivenBy?: MachineOwner | undefined;
}

/**
 * Estimates from the past: the pool's last build with the same method, and its last update with the same cost. For
 * nodes that are drained, the estimate is the time per node, including drains and the maxUnavailable at that time;
 * other nodes update together. Those of one failure domain take as long as that many nodes of the last update did.
 *
 * @returns undefined when no node has to do anything.
 */
export function estimate(input: EstimateInput): Estimate | undefined {
  const { outcomes, nodes, rounds, builds, image, drivenBy } = input;
  const disrupted = outcomes.drain + outcomes.reboot;
  const live = outcomes.live + outcomes.reload + outcomes.restart;
  if (disrupted + live === 0) return undefined;
  if (drivenBy !== undefined) return { why: `${formatDriver(drivenBy)} decides the pace` };
  const parts = [
    ...(image === undefined ? [] : [buildPart(builds, image)]),
    ...(disrupted === 0 ? [] : [disruptedPart(nodes, disrupted, rounds)]),
    ...(live === 0 ? [] : [livePart(nodes, live)]),
  ];
  const unknown = parts.filter((part) => part.ms === undefined);
  if (unknown.length > 0) return { why: unknown.map(({ why }) => why).join('; ') };
  const ms = parts.reduce((sum, part) => sum + (part.ms ?? 0), 0);
  return { seconds: Math.ceil(ms / 1000), why: parts.map(({ why }) => why).join('; ') };
}

interface Part {
  readonly ms?: number;
  readonly why: string;
}

function buildPart(builds: readonly MachineOSBuild[], { way }: ImageToBuild): Part {
  const last = builds
    .filter((build) => outcomeOf(build) === 'Succeeded' && build.status?.builder?.imageBuilderType === way)
    .flatMap(({ status }) => {
      const [start, end] = [Date.parse(status?.buildStart ?? ''), Date.parse(status?.buildEnd ?? '')];
      return Number.isNaN(end - start) ? [] : [{ start, end }];
    })
    .toSorted((a, b) => a.end - b.end)
    .at(-1);
  if (last === undefined) return { why: `there is no previous ${way} build of the pool` };
  const ms = last.end - last.start;
  return { ms, why: `the last ${way} build took ${formatDuration(ms)}` };
}

function disruptedPart(nodes: readonly MachineConfigNode[], count: number, rounds: number): Part {
  const last = lastRollout(nodes, 'disruptive');
  if (last === undefined)
    return { why: 'no node of the pool has been drained or rebooted for an update yet' };
  const byPace = ((last.end - last.start) / last.count) * count;
  const byDomains = last.msAlone * rounds;
  const why = `the last ${last.count === 1 ? 'node' : plural(last.count, 'node')} to drain or reboot took ${formatDuration(last.end - last.start)}`;
  if (byDomains <= byPace) return { ms: byPace, why };
  return {
    ms: byDomains,
    why: `${why}, and ${plural(rounds, 'node')} of one failure domain ${rounds === 1 ? 'goes' : 'go'} one after another`,
  };
}

function livePart(nodes: readonly MachineConfigNode[], count: number): Part {
  const last = lastRollout(nodes, 'live');
  if (last === undefined) return { why: 'no node of the pool has been updated live yet' };
  // The first node updates alone, then all others together.
  const ms = count === 1 ? (last.end - last.start) / last.count : last.end - last.start;
  return {
    ms,
    why: `the last live update of ${plural(last.count, 'node')} took ${formatDuration(last.end - last.start)}`,
  };
}

/**
 * @param cost whether its nodes were drained or rebooted.
 * @returns the last rollout of that cost, from the start of its first node to the end of its last, in ms.
 */
function lastRollout(
  nodes: readonly MachineConfigNode[],
  cost: 'disruptive' | 'live',
):
  | { readonly start: number; readonly end: number; readonly count: number; readonly msAlone: number }
  | undefined {
  const updates = nodes.flatMap(pastUpdates);
  const isOfCost = ({ actions }: PastUpdate) => isDisruptive(actions) === (cost === 'disruptive');
  const newest = updates
    .filter(isOfCost)
    .reduce<PastUpdate | undefined>(
      (last, each) => (last !== undefined && last.end > each.end ? last : each),
      undefined,
    );
  if (newest === undefined) return undefined;
  const isSame = ({ config, image }: PastUpdate) => config === newest.config && image === newest.image;
  const latest = ofLatestRollout(
    updates.filter((each) => isSame(each) && isOfCost(each)),
    updates.filter((each) => !isSame(each)),
  );
  return {
    start: Math.min(...latest.map(({ start }) => start)),
    end: newest.end,
    count: latest.length,
    msAlone: latest.reduce((sum, { start, end }) => sum + end - start, 0) / latest.length,
  };
}

/** Times in ms since the epoch. */
interface PastUpdate extends Pick<UpdateTimes, 'config' | 'image' | 'actions'> {
  readonly start: number;
  readonly end: number;
}

/** @returns the successful updates that the node's status still records. */
function pastUpdates({ status }: MachineConfigNode): PastUpdate[] {
  const last = status?.lastUpdate;
  if (last === undefined) return [];
  return [
    ...(isUpdate(last) && last.result === 'Succeeded' ? [last] : []),
    ...(last.earlier === undefined ? [] : [last.earlier]),
  ].map((each) => ({ ...each, start: Date.parse(each.startedAt), end: Date.parse(each.finishedAt) }));
}

/** A node that came with its target was not updated, nor was one that rebooted on request: it ran its target before. */
export function isUpdate({ firstBoot, requested }: UpdateRecord): boolean {
  return firstBoot === undefined && requested === undefined;
}

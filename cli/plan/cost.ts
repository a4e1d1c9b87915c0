import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import type { MachineConfigNode, UpdateTimes } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { plural } from '../../api/plural.ts';
import { outcomeOf } from '../../builder/status.ts';
import type { Decision } from '../../disruption/actions.ts';
import { COSTS, type Cost } from '../command-line/output-schemas.ts';
import { formatDuration } from '../command-line/quantities.ts';
import type { ImageToBuild } from './image-to-build.ts';

/** @returns the dearest of what a decision asks of a node. */
export function costOf({ actions, causes }: Decision): Cost {
  return dearest([causes.length === 0 ? 'nothing' : 'live', ...actions.map(costOfAction)]);
}

/** @returns the dearest; `nothing` of none. */
export function dearest(costs: readonly Cost[]): Cost {
  return COSTS.findLast((cost) => costs.includes(cost)) ?? 'nothing';
}

/** @returns whether a cost is that much or more. */
export function isAtLeast(cost: Cost, least: Cost): boolean {
  return COSTS.indexOf(cost) >= COSTS.indexOf(least);
}

function costOfAction({ type }: DisruptionAction): Cost {
  switch (type) {
    case 'DaemonReload':
    case 'Reload':
      return 'reload';
    case 'Restart':
      return 'restart';
    case 'Drain':
      return 'drain';
    case 'Reboot':
      return 'reboot';
  }
}

/** How long a change takes until every node of a pool has it, or that it can't be told. */
export interface Estimate {
  /** Absent where the past tells nothing. */
  readonly seconds?: number;
  /** From what it was reckoned, or what is missing, in words. */
  readonly why: string;
}

interface EstimateInput {
  /** How many of the pool's nodes pay what. */
  readonly outcomes: Readonly<Record<Cost, number>>;
  /** The pool's. */
  readonly nodes: readonly MachineConfigNode[];
  /** The pool's. */
  readonly builds: readonly MachineOSBuild[];
  readonly image: ImageToBuild | undefined;
}

/**
 * Reckons from what the pool did last: the newest build of the same kind, and for nodes the newest update that cost as
 * much. Of nodes that are taken out of service the time per node counts, with the drains and the maxUnavailable that it
 * had then; the others go together.
 *
 * @returns undefined where nothing happens to any node.
 */
export function estimate({ outcomes, nodes, builds, image }: EstimateInput): Estimate | undefined {
  const disrupted = outcomes.drain + outcomes.reboot;
  const live = outcomes.live + outcomes.reload + outcomes.restart;
  if (disrupted + live === 0) return undefined;
  const parts = [
    ...(image === undefined ? [] : [buildPart(builds, image)]),
    ...(disrupted === 0 ? [] : [disruptedPart(nodes, disrupted)]),
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

function disruptedPart(nodes: readonly MachineConfigNode[], count: number): Part {
  const last = lastRollout(nodes, true);
  if (last === undefined)
    return { why: 'no node of the pool has been drained or rebooted for an update yet' };
  const ms = ((last.end - last.start) / last.count) * count;
  return {
    ms,
    why: `the last ${plural(last.count, 'node')} to drain or reboot took ${formatDuration(last.end - last.start)}`,
  };
}

function livePart(nodes: readonly MachineConfigNode[], count: number): Part {
  const last = lastRollout(nodes, false);
  if (last === undefined) return { why: 'no node of the pool has been updated live yet' };
  // One goes first, and then all others together.
  const ms = count === 1 ? (last.end - last.start) / last.count : last.end - last.start;
  return {
    ms,
    why: `the last live update of ${plural(last.count, 'node')} took ${formatDuration(last.end - last.start)}`,
  };
}

/** @returns the newest update of that sort, from its first node's beginning to its last node's end, in ms. */
function lastRollout(
  nodes: readonly MachineConfigNode[],
  disruptive: boolean,
): { readonly start: number; readonly end: number; readonly count: number } | undefined {
  const records = nodes
    .flatMap(pastUpdates)
    .filter(({ actions }) => isDisruptive(actions) === disruptive)
    .toSorted((a, b) => endOf(a) - endOf(b));
  const newest = records.at(-1);
  if (newest === undefined) return undefined;
  const same = records.filter(({ config, image }) => config === newest.config && image === newest.image);
  return {
    start: Math.min(...same.map(({ startedAt }) => Date.parse(startedAt))),
    end: endOf(newest),
    count: same.length,
  };
}

/** @returns what the node still tells of updates that went well. */
function pastUpdates({ status }: MachineConfigNode): UpdateTimes[] {
  const last = status?.lastUpdate;
  if (last === undefined) return [];
  return [
    ...(last.result === 'Succeeded' ? [last] : []),
    ...(last.earlier === undefined ? [] : [last.earlier]),
  ];
}

function endOf({ finishedAt }: UpdateTimes): number {
  return Date.parse(finishedAt);
}

import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import { plural } from '../../../api/plural.ts';
import { holdersIn, nodesShown } from '../invariants/holders.ts';
import type { Violation } from '../invariants/violation.ts';
import type { History } from './history.ts';
import { replay } from './replay.ts';

/** What a campaign amounts to. */
export interface Summary {
  readonly minutes: number;
  readonly nodeUpdates: Readonly<Record<string, number>>;
  /** By kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** How often others took a node, by what showed it. */
  readonly holds: Readonly<Record<string, number>>;
  readonly edits: number;
  readonly versions: number;
  readonly boots: number;
  readonly comparisons: number;
  readonly violations: number;
}

/** @returns the sums of a history. */
export function summarize(history: History, violations: readonly Violation[]): Summary {
  const { events } = history;
  const count = (what: string) => events.filter((event) => event.what === what).length;
  return {
    minutes: (events.at(-1)?.at ?? 0) / 60_000,
    nodeUpdates: countNodeUpdates(history),
    faults: tally(
      events.flatMap((event) => (event.what === 'fault' && event.phase === 'begins' ? [event.fault] : [])),
    ),
    holds: countHolds(history),
    edits: count('edit'),
    versions: count('object'),
    boots: count('boot'),
    comparisons: count('bytes'),
    violations: violations.length,
  };
}

/** @returns how many updates nodes finished, by result and by whether they rebooted. */
function countNodeUpdates(history: History): Readonly<Record<string, number>> {
  const updates: string[] = [];
  for (const { event, before } of replay(history)) {
    if (event.what !== 'object' || event.object.kind !== 'MachineConfigNode') continue;
    const { lastUpdate } = (event.object as MachineConfigNode).status ?? {};
    const last = (before as MachineConfigNode | undefined)?.status?.lastUpdate;
    if (lastUpdate === undefined || lastUpdate.finishedAt === last?.finishedAt) continue;
    const reboots = lastUpdate.actions.some(({ type }) => type === 'Reboot');
    updates.push(`${lastUpdate.result} ${reboots ? 'with a reboot' : 'live'}`);
  }
  return tally(updates);
}

function countHolds(history: History): Readonly<Record<string, number>> {
  const held = new Map<string, ReadonlySet<string>>();
  const begun: string[] = [];
  for (const { event, cluster } of replay(history)) {
    if (event.what !== 'object') continue;
    for (const node of nodesShown(event.object)) {
      const now = holdersIn(cluster, node);
      begun.push(...now.filter((holder) => held.get(node)?.has(holder) !== true));
      held.set(node, new Set(now));
    }
  }
  return tally(begun);
}

function tally(names: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** @returns a summary as text, one line each. */
export function formatSummary(summary: Summary): readonly string[] {
  const sum = (counts: Readonly<Record<string, number>>) =>
    Object.values(counts).reduce((total, each) => total + each, 0);
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, each]) => `${name} ${each}`)
      .join(', ');
  const { faults, nodeUpdates, holds } = summary;
  return [
    `${summary.minutes.toFixed(1)} minutes, ${plural(summary.versions, 'version')} of objects, ${plural(summary.edits, 'edit')}, ${plural(summary.boots, 'boot')}`,
    `${plural(sum(nodeUpdates), 'node update')}: ${list(nodeUpdates)}`,
    `${plural(sum(faults), 'fault')}: ${list(faults)}`,
    `nodes were taken ${plural(sum(holds), 'time')} by others: ${list(holds)}`,
    `${plural(summary.comparisons, 'comparison')} of bytes`,
    plural(summary.violations, 'violation'),
  ];
}

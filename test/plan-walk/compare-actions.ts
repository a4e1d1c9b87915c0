import { isDeepStrictEqual } from 'node:util';
import { type DisruptionAction, formatActions } from '../../api/disruption-action.ts';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { COSTS, type Cost, costOf, dearest } from '../../predict/cost.ts';
import type { PoolAsk } from '../../predict/plan.ts';
import type { Done } from './walk-node.ts';

/** What was predicted of a step, and what the node did. */
export interface ComparedStep {
  readonly plan: PoolAsk;
  /** What the label of the image says, as builds report it; undefined where it says nothing. */
  readonly label: string | undefined;
  /** The update that the node made, by its own account; undefined where it made none. */
  readonly record: UpdateRecord | undefined;
  readonly done: Done;
  /** Units that the step has masked or taken away: there is nothing to restart, and what runs of them is stopped. */
  readonly withdrawn: ReadonlySet<string>;
  /** The node takes an image for the first time. */
  readonly optsIn: boolean;
}

/**
 * @returns what the node's own account says that it cost. Taking an image for the first time is an update, even of
 * equal content.
 */
export function costOfRecord({ record, optsIn }: Pick<ComparedStep, 'record' | 'optsIn'>): Cost {
  if (record === undefined) return 'nothing';
  return dearest([optsIn ? 'live' : 'nothing', costOf({ ...record, causes: record.causes ?? [] })]);
}

/** @returns both as text. */
export function describe({ plan, label, record, done }: ComparedStep): readonly string[] {
  return [
    `plan: ${formatActions(plan.actions)}, cost ${plannedCost(plan)}`,
    ...plan.causes.map(({ subject, change, rule }) => `  ${subject} ${change}: ${rule}`),
    `label: ${label ?? 'nothing'}`,
    `node: ${record === undefined ? 'nothing' : `${formatActions(record.actions)} (${record.source})`}`,
    `  booted: ${done.booted}; services: ${done.services.join(', ') || 'none'}`,
  ];
}

/** @returns where they differ, one line each. */
export function differingActions(given: ComparedStep): readonly string[] {
  const { plan, label, record, done, withdrawn } = given;
  const actions = record?.actions ?? [];
  const taken = formatActions(actions);
  const reboots = actions.some(({ type }) => type === 'Reboot');
  const cost = costOfRecord(given);
  const isOfWithdrawn = (request: string) => withdrawn.has(request.split(' ')[1] ?? '');
  const ofOthers = (requests: readonly string[]) => requests.filter((request) => !isOfWithdrawn(request));
  const started = done.services.filter((request) => isOfWithdrawn(request) && !request.startsWith('stop '));
  const problems: readonly (readonly [differs: boolean, problem: string])[] = [
    [formatActions(plan.actions) !== taken, `the node's actions are ${taken}`],
    [plannedCost(plan) !== cost, `the node's cost is ${cost}`],
    [label !== undefined && record !== undefined && label !== taken, `the label says ${label}, not ${taken}`],
    [done.booted !== reboots, `the node ${done.booted ? 'booted' : 'did not boot'}`],
    [record?.liveFailure !== undefined, `it failed live: ${record?.liveFailure}`],
    [started.length > 0, `it asked for ${started.join(', ')}, which the config takes away`],
    [
      !(reboots || isDeepStrictEqual(ofOthers(done.services), ofOthers(actions.flatMap(requestOf)))),
      `the service manager was asked for ${done.services.join(', ') || 'nothing'}`,
    ],
  ];
  return problems.flatMap(([differs, problem]) => (differs ? [problem] : []));
}

/** @returns the cost of the only node. */
function plannedCost({ outcomes }: PoolAsk): Cost | undefined {
  return COSTS.find((cost) => outcomes?.[cost] === 1);
}

/** @returns what the service manager is asked for. */
function requestOf(action: DisruptionAction): readonly string[] {
  switch (action.type) {
    case 'DaemonReload':
      return ['daemon-reload'];
    case 'Reload':
      return [`reload ${action.service}`];
    case 'Restart':
      return [`restart ${action.service}`];
    case 'Drain':
    case 'Reboot':
      return [];
  }
}

/** A plan that was no promise, or a node that is not what it says, with all that is needed to see why. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

import { isDisruptive } from '../../api/disruption-action.ts';
import type { Lease } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Condition } from '../../api/object.ts';
import type { NodeRow, SegmentKind, SegmentRow } from '../model/view.ts';

/**
 * What a node gave to updates, as far as its objects tell it now: its last update, and the one under way. A drain that is
 * over is told by nothing any more; remember.ts keeps what was seen of it.
 */
export function segmentsOf(
  node: MachineConfigNode,
  state: NodeRow['state'],
  lease: Lease | undefined,
): readonly SegmentRow[] {
  const name = node.metadata.name;
  const pool = node.spec.pool.name;
  const segment = (kind: SegmentKind, start: number, end?: number): SegmentRow[] =>
    Number.isNaN(start) ? [] : [{ node: name, pool, kind, start, ...(end === undefined ? {} : { end }) }];
  return [...past(node, segment), ...underWay(node, state, lease, segment)];
}

type MakeSegment = (kind: SegmentKind, start: number, end?: number) => SegmentRow[];

function past({ status }: MachineConfigNode, segment: MakeSegment): SegmentRow[] {
  const update = status?.lastUpdate;
  if (update === undefined) return [];
  const rebooted =
    update.bootIDBefore !== update.bootIDAfter || update.actions.some(({ type }) => type === 'Reboot');
  const made = segment(
    rebooted ? 'reboot' : 'live',
    Date.parse(update.startedAt),
    Date.parse(update.finishedAt),
  );
  return update.result === 'Succeeded' ? made : made.map((row) => ({ ...row, failed: true as const }));
}

function underWay(
  { status }: MachineConfigNode,
  state: NodeRow['state'],
  lease: Lease | undefined,
  segment: MakeSegment,
): SegmentRow[] {
  const taken = Date.parse(lease?.spec?.acquireTime ?? '');
  if (state === 'draining') return segment('drain', taken);
  if (state !== 'applying' && state !== 'rebooting') return [];
  const actions = status?.plan?.actions ?? [];
  const disruptive = isDisruptive(actions);
  const began = beganAt(status?.conditions);
  // Leave is given and the daemon has not taken it up: the node is out of service still.
  if (began === undefined) return disruptive ? segment('drain', taken) : [];
  const reboots = state === 'rebooting' || actions.some(({ type }) => type === 'Reboot');
  const drained = disruptive && taken < began ? segment('drain', taken, began) : [];
  return [...drained, ...segment(reboots ? 'reboot' : 'live', began)];
}

/** When the daemon began to act; while it has not, the condition is False. */
function beganAt(conditions: readonly Condition[] | undefined): number | undefined {
  const executed = conditions?.find(({ type }) => type === 'UpdateExecuted');
  return executed === undefined || executed.status === 'False'
    ? undefined
    : Date.parse(executed.lastTransitionTime);
}

import { type DisruptionAction, formatAction } from '../api/disruption-action.ts';

/**
 * Combines what several policies require into the list that a node does.
 *
 * Drain comes first, then DaemonReload, as nothing may reach a service before them. Services follow in the order of
 * every policy: a policy that restarts coreos-update-ca-trust.service before crio.service counts on crio starting last,
 * so crio's restart for another reason is no substitute for the last one. An action is repeated only where two policies
 * order the same services differently.
 *
 * @param policies the actions of each policy, in its own order.
 * @returns Reboot alone if any policy requires it.
 */
export function orderActions(policies: readonly (readonly DisruptionAction[])[]): DisruptionAction[] {
  const all = policies.flat();
  if (all.some(({ type }) => type === 'Reboot')) return [{ type: 'Reboot' }];
  const first = (['Drain', 'DaemonReload'] as const).filter((type) =>
    all.some((action) => action.type === type),
  );
  const services = policies.map((actions) =>
    actions.filter(({ type }) => type === 'Reload' || type === 'Restart'),
  );
  return [...first.map((type) => ({ type })), ...inEveryOrder(services.map(keepLast))];
}

/** Of equal actions of one policy the last counts: it is the one after all that the policy does before it. */
function keepLast(actions: readonly DisruptionAction[]): DisruptionAction[] {
  const last = new Map(actions.map((action, index) => [formatAction(action), index]));
  return actions.filter((action, index) => last.get(formatAction(action)) === index);
}

/**
 * @returns a list that contains each of the lists in its order. Each action is in it once, unless lists contradict each
 *   other; then the first list's next action is done, and again where another list has it later.
 */
function inEveryOrder(lists: readonly (readonly DisruptionAction[])[]): DisruptionAction[] {
  let left = lists;
  const done: DisruptionAction[] = [];
  for (;;) {
    const later = new Set(left.flatMap((list) => list.slice(1).map(formatAction)));
    const heads = left.flatMap((list) => list.slice(0, 1));
    const next = heads.find((head) => !later.has(formatAction(head))) ?? heads[0];
    if (next === undefined) return done;
    done.push(next);
    left = left.map(([head, ...rest]) =>
      head === undefined || formatAction(head) === formatAction(next) ? rest : [head, ...rest],
    );
  }
}

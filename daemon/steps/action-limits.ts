import { InvalidArgumentError } from 'commander';
import { type DisruptionAction, formatAction } from '../../api/disruption-action.ts';

/** How long a service's action may take. */
export interface ActionLimits {
  /** ms, of every action that has no limit of its own. */
  readonly anyMs: number;
  /** ms by the action in words: `Restart(crio.service)`, or `Restart` for all of that type. */
  readonly ownMs: ReadonlyMap<string, number>;
}

/** @returns ms that an action may take: its own limit, else its type's, else every action's. */
export function limitMsOf({ anyMs, ownMs }: ActionLimits, action: DisruptionAction): number {
  return ownMs.get(formatAction(action)) ?? ownMs.get(action.type) ?? anyMs;
}

const LIMIT = /^(DaemonReload|(?:Reload|Restart)(?:\([A-Za-z0-9:_.@\\-]+\))?)=([1-9][0-9]{0,5})$/;

/**
 * Takes one more limit of its own into account, as commander's argParser.
 *
 * @param text such as `Restart(crio.service)=600`, in seconds.
 * @throws InvalidArgumentError for anything else.
 */
export function withActionLimit(
  text: string,
  before: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const [, action, seconds] = LIMIT.exec(text) ?? [];
  if (action === undefined) {
    throw new InvalidArgumentError(
      'Expected an action and seconds, such as Restart(crio.service)=600, Reload=60 or DaemonReload=60.',
    );
  }
  return new Map([...before, [action, Number(seconds) * 1000]]);
}

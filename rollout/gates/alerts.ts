import { annotations } from '../../api/names.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { StartHold } from './hold.ts';
import { type HoldState, monitored, type Questions } from './monitored.ts';

/** Matchers that an alert has to meet all of, each as Alertmanager's API takes it: `severity="critical"`. */
export type AlertMatchers = readonly string[];

/** What holds a pool's updates back (shale.dev/hold-on-alerts): an alert that meets one of these. */
export type AlertHold = Questions<AlertMatchers>;

/**
 * A matcher of Alertmanager (its documentation, "Matcher"), with its value in quotes, and what separates it from the
 * next.
 */
const MATCHER = /\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)/y;

/**
 * Reads matchers: those of a line, separated by commas, have to be met together; an alert of any line holds updates
 * back.
 *
 * @throws Error that says what can't be read.
 */
export function parseAlertHold(text: string): AlertHold {
  const lines = text.split('\n').map((line) => line.trim().replace(/^\{(.*)\}$/, '$1'));
  const questions = lines.filter((line) => line !== '').map(matchersOf);
  if (questions.length === 0) throw new Error('it names no alert');
  return { kind: 'named', questions };
}

function matchersOf(line: string): AlertMatchers {
  const matchers: string[] = [];
  MATCHER.lastIndex = 0;
  for (let at = 0; at < line.length; at = MATCHER.lastIndex) {
    const [, name = '', operator = '', value = ''] = MATCHER.exec(line) ?? [];
    if (name === '')
      throw new Error(
        `${JSON.stringify(line.slice(at))}: expected matchers such as severity="critical", separated by commas`,
      );
    matchers.push(`${name}${operator}${value}`);
  }
  return matchers;
}

/** What a hold says while the answer is missing: `shale doctor` looks for it. */
export const ALERTS_UNKNOWN = 'it is unknown whether any is firing';

/** The pool waits while alerts that it names are firing. */
export const alerts = {
  kind: 'start',
  reasons: ['AlertsFiring', 'AlertsUnknown'],
  hold: (
    { alerts: look }: { readonly alerts?: () => HoldState },
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `alerts (annotation ${annotations.holdOnAlerts})`,
      unknown: ALERTS_UNKNOWN,
      reasons: { holds: 'AlertsFiring', unknown: 'AlertsUnknown' },
    }),
} as const;

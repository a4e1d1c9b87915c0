import { type Ask, HoldLookup, type HoldLookupParts } from './hold-lookup.ts';
import type { AlertMatchers } from './hold-questions.ts';

/** Whom the operator asks before updates start, where a pool wants it; absent: such pools wait. */
export interface Monitoring {
  /** Finds the names of the alerts that are active and meet all matchers. */
  readonly askAlerts?: Ask<AlertMatchers>;
  /** Finds the query again if it has a result. */
  readonly askQueries?: Ask<string>;
}

export interface MonitoringLookups {
  readonly alerts: HoldLookup<AlertMatchers>;
  readonly queries: HoldLookup<string>;
}

export function monitoringLookups(
  { askAlerts, askQueries }: Monitoring,
  parts: Omit<HoldLookupParts<never>, 'ask' | 'words'>,
): MonitoringLookups {
  return {
    alerts: new HoldLookup({
      ...parts,
      ask: askAlerts,
      words: {
        flag: '--alertmanager-url',
        found: { one: 'alert is firing', more: 'alerts are firing' },
        what: 'alerts',
      },
    }),
    queries: new HoldLookup({
      ...parts,
      ask: askQueries,
      words: {
        flag: '--prometheus-url',
        found: { one: 'query has a result', more: 'queries have a result' },
        what: 'queries',
      },
    }),
  };
}

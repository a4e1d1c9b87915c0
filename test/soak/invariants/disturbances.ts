import { OPERATOR_DEPLOYMENT } from '../../../api/names.ts';
import type { FaultEvent, History } from '../history/history.ts';

/** Times in which a process may be behind what the API server has. */
export interface Disturbances {
  /** @returns whether the process had `ms` without any between two times, all in ms since the campaign began. */
  hadQuiet(from: number, to: number, ms: number): boolean;
}

/** @returns when the operator may have been behind. One that starts lists everything: its end is none. */
export function disturbancesOfOperator(history: History): Disturbances {
  return disturbancesOf(
    history,
    ({ fault, subject }) =>
      (fault === 'pause' && subject === OPERATOR_DEPLOYMENT) ||
      isOfWatches(fault) ||
      (isOfAPI(fault) && (subject === 'all' || subject === 'shale-operator')),
  );
}

/** @returns when the daemon of a node may have been behind. */
export function disturbancesOfDaemon(history: History, node: string): Disturbances {
  const own = new Set([`daemon of ${node}`, node]);
  return disturbancesOf(
    history,
    ({ fault, subject }) =>
      own.has(subject) ||
      isOfWatches(fault) ||
      (isOfAPI(fault) && (subject === 'all' || subject === 'shale-daemon')),
  );
}

const isOfWatches = (fault: string) => fault.startsWith('watches ');
const isOfAPI = (fault: string) => fault.startsWith('API ');

function disturbancesOf({ events }: History, disturbs: (fault: FaultEvent) => boolean): Disturbances {
  const faults = events.filter((event) => event.what === 'fault').filter(disturbs);
  const intervals: { readonly from: number; readonly to: number }[] = [];
  let open: FaultEvent[] = [];
  for (const fault of faults) {
    const isBegin =
      fault.phase === 'begins' || (fault.phase === 'fails' && fault.details.startsWith('begins'));
    if (isBegin) {
      open.push(fault);
      intervals.push({ from: fault.at, to: fault.at });
      continue;
    }
    const begun = open.find((each) => each.fault === fault.fault && each.subject === fault.subject);
    if (begun === undefined) continue;
    open = open.filter((each) => each !== begun);
    intervals.push({ from: begun.at, to: fault.at });
  }
  const sorted = intervals.toSorted((a, b) => a.from - b.from);
  return {
    hadQuiet: (from, to, ms) => {
      let quietSince = from;
      for (const interval of sorted) {
        if (interval.to < quietSince) continue;
        if (interval.from > to) break;
        if (interval.from - quietSince >= ms) return true;
        quietSince = Math.max(quietSince, interval.to);
      }
      return to - quietSince >= ms;
    },
  };
}

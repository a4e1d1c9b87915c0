import { by } from '../../../api/order.ts';
import type { History } from '../history/history.ts';
import { checkBoots, checkBytes, checkImages } from './content.ts';
import { checkConvergence } from './convergence.ts';
import { checkAdminCordons, checkLeases, checkMaxUnavailable } from './disruption.ts';
import { checkHeldDisks } from './held-disks.ts';
import { checkHolders } from './holders.ts';
import { checkFaults, checkLeaks, checkProcesses, checkSecrets } from './processes.ts';
import type { Violation } from './violation.ts';

const INVARIANTS = [
  checkMaxUnavailable,
  checkLeases,
  checkAdminCordons,
  checkHolders,
  checkHeldDisks,
  checkBytes,
  checkImages,
  checkBoots,
  checkConvergence,
  checkProcesses,
  checkSecrets,
  checkLeaks,
  checkFaults,
] as const;

/** @returns whatever in a history Shale promises never to do, the earliest first. */
export function checkHistory(history: History): readonly Violation[] {
  return INVARIANTS.flatMap((check) => check(history)).sort(by(({ at }) => at));
}

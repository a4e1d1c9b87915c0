import { writeFileSync } from 'node:fs';
import { afterEachStart, beforeEachChange } from '../fixtures/killed/before-change.ts';

/** Loaded before a lab's daemon: it kills itself at a point, or counts its points. */

/** Number of the point, from 0. */
const at = Number(process.env['SHALE_LAB_DIES_AT'] ?? Number.NaN);
/** The file that has how many points there were. */
const countFile = process.env['SHALE_LAB_POINTS'] ?? '';
let points = 0;

function pass(): void {
  if (points === at) process.kill(process.pid, 'SIGKILL');
  points += 1;
  if (countFile !== '') writeFileSync(countFile, String(points));
}

beforeEachChange(pass);
// A command goes on without the daemon that has started it, as on a host.
afterEachStart(pass);

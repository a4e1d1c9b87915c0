import { readFileSync } from 'node:fs';

/**
 * Loaded into Shale's processes before their own code (`node --import`): their wall clock can jump. Timers and
 * performance.now() go on as they are, as on a machine whose clock is set.
 *
 * The URL's `file` names a JSON file with ms by process (`operator`, `machine-os-builder`, `daemon`) to add to the
 * time.
 */
const file = new URL(import.meta.url).searchParams.get('file') ?? '';
const LOOK_MS = 500;
const own = process.argv[2] ?? '';
const RealDate = Date;
let offset = 0;

function look(): void {
  try {
    offset = (JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>)[own] ?? 0;
  } catch {
    // Written just now: the next look has it.
  }
}

class ShiftedDate extends RealDate {
  constructor(...args: readonly unknown[]) {
    super(...((args.length === 0 ? [RealDate.now() + offset] : args) as [number]));
  }

  static override now(): number {
    return RealDate.now() + offset;
  }
}

look();
setInterval(look, LOOK_MS).unref();
globalThis.Date = ShiftedDate as DateConstructor;

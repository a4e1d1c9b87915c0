import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { patience } from '../fixtures/patience.ts';
import { everyCase, seed } from '../fixtures/sample.ts';
import { type Case, casesOf, type Way } from './cases.ts';
import { formatVerdict, tryCase } from './try-case.ts';

/** By hand, as long as one likes: minutes that each way is tried. */
const minutes = Number(process.env['SHALE_DIFFERENTIAL_MINUTES'] ?? 0);
/** So many at once: a case waits for its files and processes more than it computes. */
const AT_ONCE = 4;
/** How many times more `make soak` tries. */
const SOAK = 10;
/** What a landing takes at most; a failure is shrunk as far as it comes until then. */
const LIMIT_MS = everyCase ? patience(1_800_000) : patience(600_000);
/**
 * A landing tries the same cases each time, so that the change decides and not the draw; what is drawn finds new kinds
 * by hand, and each becomes a test of its own.
 */
const LANDING_SEED = 1;
/** What the cases of a run are drawn by. */
export const drawnSeed =
  everyCase || minutes > 0 ? seed : Number(process.env['SHALE_DIFFERENTIAL_SEED'] ?? LANDING_SEED);

/** The time that a test of tryCases needs. */
export const CASES_MS = (minutes > 0 ? minutes * 60_000 : LIMIT_MS) + patience(60_000);

/**
 * Tries random cases one way.
 *
 * @param count how many a landing tries.
 * @returns how many were tried, and how many of them the product refused. @throws with the smallest case that failed,
 *   as text.
 */
export async function tryCases(
  way: Way,
  count: number,
): Promise<{ readonly tried: number; readonly refused: number }> {
  const dir = mkdtempSync(path.join(tmpdir(), 'shale-differential-'));
  const tally = { tried: 0, refused: 0 };
  const numRuns = Math.ceil((everyCase ? count * SOAK : count) / AT_ONCE);
  try {
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, part) => {
        const property = fc.asyncProperty(casesOf([way]), async (given) => {
          tally.tried += 1;
          await requireEqual(path.join(dir, `case-${tally.tried}`), given, tally);
        });
        const result = await fc.check(property, {
          seed: drawnSeed * AT_ONCE + part,
          numRuns: minutes > 0 ? Number.MAX_SAFE_INTEGER : numRuns,
          interruptAfterTimeLimit: minutes > 0 ? minutes * 60_000 : LIMIT_MS,
          markInterruptAsFailure: false,
        });
        if (result.failed) throw asError(result.errorInstance);
        if (minutes === 0 && result.interrupted)
          throw new Error(`only ${result.numRuns} of ${numRuns} cases within ${LIMIT_MS} ms`);
      }),
    );
    return tally;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function requireEqual(dir: string, given: Case, tally: { refused: number }): Promise<void> {
  const verdict = await tryCase(dir, given);
  if (verdict.refused !== undefined) tally.refused += 1;
  const text = formatVerdict(given, verdict);
  if (text !== undefined) throw new Error(`what the ways make of one config differs\n${text}`);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

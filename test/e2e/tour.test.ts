import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../cluster/log.ts';
import { isSuccess } from '../../sandbox/tour/report.ts';
import { formatReport } from '../../sandbox/tour/report-text.ts';
import { runTour, TOUR, type TourListener } from '../../sandbox/tour/run-tour.ts';

const MINUTES = 60_000;
const silent: TourListener = {
  onStep: () => undefined,
  onProgress: () => undefined,
  onCheck: () => undefined,
  onStepEnd: () => undefined,
};
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-tour-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test(
  'the tour: every step ends as it should, and nothing is left behind',
  async () => {
    const { report, sandbox } = await runTour({
      dir,
      choice: { assets: process.env['KUBEBUILDER_ASSETS'] },
      listener: silent,
      log: createLogger('tour', 'silent'),
      signal: AbortSignal.timeout(10 * MINUTES),
    });
    await sandbox.stop();
    expect(isSuccess(report), formatReport(report)).toBe(true);
    expect(report.steps).toHaveLength(TOUR.length);
    expect((await readdir(dir)).sort()).toEqual(['logs', 'sandbox.log']);
    await expect(processesOf(dir)).resolves.toEqual([]);
  },
  12 * MINUTES,
);

/** @returns command lines of processes that name the directory. */
async function processesOf(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.includes(directory)).map((line) => line.replaceAll('\0', ' '));
}

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../cluster/process.ts';
import { readAuditLog } from '../../workshop/sandbox/control-plane.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { formatReport, isSuccess } from '../../workshop/sandbox/tour/report.ts';
import { runTour, TOUR, type TourListener } from '../../workshop/sandbox/tour/run-tour.ts';
import { deadline } from '../fixtures/patience.ts';
import { neverUsed, permissionsInAll, refusedRequests, wordsOf } from '../install/permissions.ts';
import { RARELY_USED } from '../install/rarely-used.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');
const assets = process.env['KUBEBUILDER_ASSETS'];
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
      choice: { assets },
      nodes: 'directory',
      listener: silent,
      log: createLogger('tour', 'silent'),
      signal: deadline(10 * MINUTES),
    });
    await sandbox.stop();
    expect(isSuccess(report), formatReport(report)).toBe(true);
    expect(report.steps).toHaveLength(TOUR.length);
    const logs = ['logs', 'sandbox.log'];
    expect((await readdir(dir)).sort()).toEqual(assets === undefined ? ['audit.log', ...logs] : logs);
    await expect(processesOf(dir)).resolves.toEqual([]);
    // kube-apiserver has an audit log of its own, which is not looked at here.
    if (assets === undefined) await expectLeastPrivilege(path.join(dir, 'audit.log'));
  },
  12 * MINUTES,
);

/** Everything that Shale's processes may do, they did on the tour, and nothing that they wanted to do was refused. */
async function expectLeastPrivilege(auditLog: string): Promise<void> {
  const events = readAuditLog(auditLog);
  const permissions = permissionsInAll(await readKustomization(MANIFESTS));
  expect(refusedRequests(events, new Set(permissions.map(({ account }) => account)))).toEqual([]);
  const unused = neverUsed(permissions, events).map(wordsOf);
  expect(unused.filter((words) => !(words in RARELY_USED))).toEqual([]);
}

/** @returns command lines of processes that name the directory. */
async function processesOf(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.includes(directory)).map((line) => line.replaceAll('\0', ' '));
}

/** The tour as a user sees it, every step of it on a sandbox. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NODE_PULL_SECRET, PAGE_TLS_SECRET, SIGNING_KEY_SECRET } from '../../api/names.ts';
import { createLogger } from '../../cluster/log.ts';
import { readAuditLog } from '../../workshop/sandbox/control-plane.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { readOfProcess, readProcessTable } from '../../workshop/sandbox/process-table.ts';
import { formatReport, isSuccess, type TourReport } from '../../workshop/sandbox/tour/report.ts';
import { runTour, TOUR, type TourListener } from '../../workshop/sandbox/tour/run-tour.ts';
import { deadline } from '../fixtures/patience.ts';
import { neverUsed, permissionsInAll, refusedRequests, wordsOf } from '../install/permissions.ts';
import { RARELY_USED } from '../install/rarely-used.ts';
import { type CanaryFindings, TOUR_SECRETS, tourCanaries } from './tour-canaries.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');
const assets = process.env['KUBEBUILDER_ASSETS'];
const MINUTES = 60_000;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-tour-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test(
  'the tour: every step ends as it should, and nothing is left behind',
  async () => {
    const signal = deadline(10 * MINUTES);
    const canaries = tourCanaries(dir, signal);
    const listener: TourListener = {
      onStep: (number) => {
        // The first brings the cluster up.
        if (number === 2) canaries.plant();
      },
      onProgress: () => undefined,
      onCheck: () => undefined,
      onStepEnd: () => canaries.collect(),
    };
    const { report, sandbox } = await runTour({
      dir,
      choice: { assets },
      nodes: 'directory',
      secrets: TOUR_SECRETS,
      listener,
      log: createLogger('tour', 'silent'),
      signal,
    });
    const canary = await canaries.finish();
    await sandbox.stop();
    expect(isSuccess(report), formatReport(report)).toBe(true);
    expectSecretsKept(canary, report);
    expect(report.steps).toHaveLength(TOUR.length);
    const logs = ['logs', 'sandbox.log'];
    expect((await readdir(dir)).sort()).toEqual(assets === undefined ? ['audit.log', ...logs] : logs);
    expect(processesOf(dir)).toEqual([]);
    // kube-apiserver has an audit log of its own, which is not looked at here.
    if (assets === undefined) await expectLeastPrivilege(path.join(dir, 'audit.log'));
  },
  12 * MINUTES,
);

/** Secrets were used, and stand nowhere but in Secrets. */
function expectSecretsKept(
  { found, secrets, searched, objects }: CanaryFindings,
  { steps }: TourReport,
): void {
  expect(found).toEqual([]);
  const used = [...Object.values(TOUR_SECRETS), SIGNING_KEY_SECRET, NODE_PULL_SECRET, PAGE_TLS_SECRET];
  expect(secrets).toEqual(expect.arrayContaining(used));
  const text = objects.join('\n');
  const isEngineMissing = steps.some(({ skipped }) => skipped !== undefined);
  const named = isEngineMissing ? [TOUR_SECRETS.push] : [TOUR_SECRETS.push, TOUR_SECRETS.build];
  for (const name of [...named, '"pullSecret":"version:']) expect(text).toContain(name);
  expect(Math.min(searched.files, searched.objects, searched.processes)).toBeGreaterThan(20);
}

/** Everything that Shale's processes may do, they did on the tour, and nothing that they wanted to do was refused. */
async function expectLeastPrivilege(auditLog: string): Promise<void> {
  const events = readAuditLog(auditLog);
  const permissions = permissionsInAll(await readKustomization(MANIFESTS));
  expect(refusedRequests(events, new Set(permissions.map(({ account }) => account)))).toEqual([]);
  const unused = neverUsed(permissions, events).map(wordsOf);
  expect(unused.filter((words) => !(words in RARELY_USED))).toEqual([]);
}

/** @returns command lines of processes that name the directory. */
function processesOf(directory: string): string[] {
  const lines = readProcessTable().map(({ pid }) => readOfProcess(pid, 'cmdline')?.toString() ?? '');
  return lines.filter((line) => line.includes(directory)).map((line) => line.replaceAll('\0', ' '));
}

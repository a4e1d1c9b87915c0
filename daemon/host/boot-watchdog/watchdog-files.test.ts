import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseMark, watchdogFiles, watchdogPaths, watchdogScript, watchdogUnit } from './watchdog-files.ts';

const DEPLOYMENT = `${'a'.repeat(64)}.0`;
const script = watchdogScript({
  deployment: DEPLOYMENT,
  limitSeconds: 900,
  rollbackScript: 'bootc rollback',
});

test('the program is a POSIX shell’s, and knows its deployment, its limit and the way back', () => {
  execFileSync('sh', ['-n'], { input: script });
  expect(script).toContain(`\ndeployment=${DEPLOYMENT}\nlimit=900\n`);
  expect(script).toContain('back() {\nbootc rollback\n}');
});

test('the unit waits for nothing that a broken system may never reach', () => {
  expect(watchdogUnit).toContain('DefaultDependencies=no');
  expect(watchdogUnit.match(/^After=.*$/gm)).toEqual(['After=local-fs.target']);
  expect(watchdogUnit).toContain(`ExecStart=/bin/sh ${watchdogPaths.script}\n`);
});

test('the same watch gives the same bytes, the program before the unit that runs it', () => {
  const watch = { deployment: DEPLOYMENT, limitSeconds: 900, rollbackScript: 'bootc rollback' };
  expect(watchdogFiles(watch)).toEqual(watchdogFiles(watch));
  expect([...watchdogFiles(watch).keys()]).toEqual([watchdogPaths.script, watchdogPaths.unit]);
});

const mark = (more: Readonly<Record<string, string>> = {}, said = '') => {
  const fields = {
    deployment: DEPLOYMENT,
    bootID: 'boot-2',
    reason: 'KubeletNeverStarted',
    unit: 'kubelet.service',
    limitSeconds: '900',
    tries: '1',
    at: '2026-01-01T00:00:00Z',
    ...more,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name} ${value}\n`);
  return `${lines.join('')}\n${said}`;
};

test('tells what did not run, and its last lines', () => {
  expect(parseMark(mark({}, 'one\nunknown flag\n'))).toEqual({
    deployment: DEPLOYMENT,
    bootID: 'boot-2',
    reason: 'KubeletNeverStarted',
    why: 'kubelet.service was not running within 900 s of boot, so no daemon could start; the host rolled back by itself: one; unknown flag',
  });
});

test.each([
  [
    'kubelet.service',
    'no daemon started within 900 s of boot, although kubelet.service was running; the host rolled back by itself',
  ],
  ['', 'no daemon started within 900 s of boot; the host rolled back by itself'],
])('tells of a missing daemon, the kubelet being "%s"', (unit, why) => {
  expect(parseMark(mark({ reason: 'DaemonNeverStarted', unit }))?.why).toBe(why);
});

test.each([
  [
    'KubeletNeverStarted',
    'containerd.service was not running within 900 s of boot, so neither kubelet.service nor a daemon could start; the host rolled back by itself: bad config',
  ],
  [
    'DaemonNeverStarted',
    'no daemon started within 900 s of boot, because containerd.service was not running; the host rolled back by itself: bad config',
  ],
])('blames the container runtime that did not run: %s', (reason, why) => {
  expect(parseMark(mark({ reason, runtime: 'containerd.service' }, 'bad config\n'))?.why).toBe(why);
});

const tailOf = (log: string) => parseMark(mark({}, log))?.why.split('by itself: ')[1];

test.each([
  ['whole lines', `${'first '.repeat(200)}\n${'second '.repeat(100)}\nlast\n`, /^second .* second; last$/],
  ['whole words of a long line', `first\n${'word '.repeat(1_000)}end`, /^… word .* word end$/],
  ['nothing of one long word', 'x'.repeat(5_000), /^…$/],
])('keeps no more of the last lines than helps: %s', (_what, log, expected) => {
  const tail = tailOf(log);
  expect(tail).toMatch(expected);
  expect(tail?.length).toBeLessThanOrEqual(1_001);
});

/** Runs the part of the program that tells, on a host with these units. @returns the mark. */
async function told(active: readonly string[], present: readonly string[]): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'watchdog-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = path.join(directory, 'mark');
  const functions = script.slice(script.indexOf('present() {'), script.indexOf('mkdir -p '));
  const program = `
deployment=d limit=900 mark=${file}
systemctl() {
  case "$1" in
    show) for unit in ${present.join(' ')}; do [ "$unit" != "$4" ] || { echo loaded; return; }; done; echo not-found ;;
    *) for unit in ${active.join(' ')}; do [ "$unit" != "$3" ] || return 0; done; return 3 ;;
  esac
}
journalctl() { echo "$2"; }
sync() { :; }
${functions}
tell 1
`;
  execFileSync('sh', ['-u'], { input: program });
  return readFile(file, 'utf8');
}

test.each([
  [['kubelet.service', 'crio.service'], [], 'KubeletNeverStarted', 'crio.service'],
  [['kubelet.service', 'crio.service'], ['crio.service'], 'KubeletNeverStarted', ''],
  [['kubelet.service', 'crio.service'], ['kubelet.service', 'crio.service'], 'DaemonNeverStarted', ''],
  [['k3s.service'], [], 'KubeletNeverStarted', ''],
  [[], [], 'DaemonNeverStarted', ''],
])('a host with %j of which %j run: %s, runtime "%s"', async (present, active, reason, runtime) => {
  const text = await told(active, present);
  expect(text).toContain(`\nreason ${reason}\nunit ${present[0] ?? ''}\nruntime ${runtime}\n`);
  const silent = runtime || present[0];
  expect(text.endsWith(silent === undefined ? '\n\n' : `\n\n--unit=${silent}\n`)).toBe(true);
});

test.each([
  ['nothing', ''],
  ['half of one', `deployment ${DEPLOYMENT}\nbootID boot-2`],
  ['another reason', mark({ reason: 'Bored' })],
  ['no deployment', mark({ deployment: '' })],
  ['what only looks like one further down', `x y\n\n${mark()}`],
])('%s is no mark', (_what, text) => {
  expect(parseMark(text)).toBeUndefined();
});

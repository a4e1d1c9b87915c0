import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
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
    why: 'kubelet.service was not running within 900 s of boot, so no daemon could start; the host rolled back by itself: one\nunknown flag',
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

test('keeps no more of the last lines than helps', () => {
  expect(parseMark(mark({}, `${'x'.repeat(5_000)}end`))?.why).toMatch(/: x{997}end$/);
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

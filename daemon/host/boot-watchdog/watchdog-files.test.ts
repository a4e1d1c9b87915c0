import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { watchdogFiles, watchdogPaths, watchdogScript, watchdogUnit } from './watchdog-files.ts';

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

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { present } from '../../api/present.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type CheckProgram, checkRunner, type RunCheck } from './check-runner.ts';

let root: string;
let run: RunCheck;
const options = { limitMs: 20_000, signal: deadline(60_000) };
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'check-'));
  run = checkRunner({ root, rootInside: root, prefix: [] });
});
afterEach(() => rm(root, { recursive: true }));

async function check(text: string): Promise<CheckProgram> {
  const place = path.join(root, 'check');
  await writeFile(place, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return { place };
}

test('a check runs at the root of its node, and is told of it', async () => {
  expect(await run(await check('[ "$(pwd)" = "$SHALE_ROOT" ] && touch ran'), options)).toEqual({
    passed: true,
  });
  await readFile(path.join(root, 'ran'));
});

test('it has nothing of the daemon in its environment', async () => {
  expect(await run(await check('env; exit 1'), options)).toMatchObject({
    why: expect.not.stringContaining('VITEST'),
  });
});

test('a check that fails says why, with its last lines and no more', async () => {
  const end = await run(await check('seq 1 5000; echo no route >&2; exit 3'), options);
  expect(end).toMatchObject({
    passed: false,
    why: expect.stringMatching(/^failed \(exit code 3\): [\s\S]*no route$/),
  });
  if (!end.passed) expect(end.why.split('\n')).toHaveLength(10);
});

test('no more of its last words is kept than helps', async () => {
  const text = `printf '%s' ${'x'.repeat(500)} ${'y'.repeat(990)} ' the end'; exit 1`;
  expect(await run(await check(text), options)).toEqual({
    passed: false,
    why: `failed (exit code 1): ${'x'.repeat(2)}${'y'.repeat(990)} the end`,
  });
  expect(await run(await check('exit 1'), options)).toEqual({ passed: false, why: 'failed (exit code 1)' });
});

test('one that a signal ends says which', async () => {
  const killed = checkRunner({ root, rootInside: root, prefix: ['sh', '-c', 'kill -9 $$'] });
  expect(await killed(await check('exit 0'), options)).toEqual({ passed: false, why: 'failed (SIGKILL)' });
});

test('it is run by what it names, with a limit in whole seconds, in an environment of its own', async () => {
  const echo = ['sh', '-c', 'echo "$@"; exit 1', 'sh'];
  const shown = checkRunner({ root, rootInside: '/', prefix: echo });
  const place = path.join(root, 'usr/lib/check');
  const command = async (limitMs: number, interpreter?: string) => {
    const end = await shown({ place, ...present({ interpreter }) }, { ...options, limitMs });
    return end.passed ? '' : end.why.replace('failed (exit code 1): ', '');
  };
  const env =
    'env --ignore-environment --chdir=/ PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 SHALE_ROOT=/';
  expect(await command(20_000)).toBe(`${env} timeout --kill-after=5 20 /usr/lib/check`);
  expect(await command(1_001, 'bash')).toBe(`${env} timeout --kill-after=5 2 bash /usr/lib/check`);
  expect(await command(-1)).toBe(`${env} timeout --kill-after=5 1 /usr/lib/check`);
});

test('a check that is not begun any more does not run', async () => {
  const program = await check('touch ran');
  await expect(run(program, { ...options, signal: AbortSignal.abort(new Error('over')) })).rejects.toThrow(
    'over',
  );
  await expect(readFile(path.join(root, 'ran'))).rejects.toThrow('ENOENT');
});

test('a check that hangs is ended, and what it started too', async () => {
  const end = await run(await check('sleep 600 & echo $! > pid; wait'), { ...options, limitMs: 1_000 });
  expect(end).toEqual({ passed: false, why: 'took longer than 1 s' });
  const pid = Number(await readFile(path.join(root, 'pid'), 'utf8'));
  await expect(readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).resolves.toBe('');
});

test('what a check leaves running keeps nobody waiting', async () => {
  const end = await run(await check('setsid sleep 5 & echo started'), options);
  expect(end).toEqual({ passed: true });
});

test('one that can not be run has failed', async () => {
  expect(await run({ place: path.join(root, 'absent') }, options)).toMatchObject({ passed: false });
});

test('a check ends with the daemon', async () => {
  const stop = new AbortController();
  const running = run(await check('exec sleep 600'), { ...options, signal: stop.signal });
  stop.abort(new Error('the daemon ends'));
  await expect(running).rejects.toThrow('the daemon ends');
});

test('what enters the host for a check ends with it, also where it hands no signal on', async () => {
  const pidFile = path.join(root, 'pid');
  const enter = ['sh', '-c', `sleep 600 & echo $! > ${pidFile}; wait`];
  const entering = checkRunner({ root, rootInside: root, prefix: enter });
  const stop = new AbortController();
  const running = entering(await check('exit 0'), { ...options, signal: stop.signal });
  const pid = () => readFile(pidFile, 'utf8').catch(() => '');
  await expect.poll(pid, { timeout: patience(10_000) }).toMatch(/^\d+\n$/);
  stop.abort(new Error('given up'));
  await expect(running).rejects.toThrow('given up');
  const command = `/proc/${Number(await pid())}/cmdline`;
  const left = () => readFile(command, 'utf8').catch(() => '');
  await expect.poll(left, { timeout: patience(10_000) }).toBe('');
});

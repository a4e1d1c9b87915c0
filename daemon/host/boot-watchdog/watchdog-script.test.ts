import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OSTREE_BOOT_SCRIPT } from '../../os/ostree/boot-script.ts';
import { watchdogPaths } from './watchdog-files.ts';
import { watchdogFiles, watchdogScript, watchdogUnit } from './watchdog-script.ts';

const DEPLOYMENT = `${'a'.repeat(64)}.0`;
const script = watchdogScript({
  deployment: DEPLOYMENT,
  limitSeconds: 900,
  rollbackScript: 'bootc rollback',
  bootScript: OSTREE_BOOT_SCRIPT,
});

test('the program is a POSIX shell’s, and knows its deployment, its limit and the rollback', () => {
  execFileSync('sh', ['-n'], { input: script });
  expect(script).toContain(`\ndeployment=${DEPLOYMENT}\nlimit=900\nlongest=3600\n`);
  expect(script).toContain('back() {\nbootc rollback\n}');
});

test('the unit waits for nothing that a broken system may never reach', () => {
  expect(watchdogUnit).toContain('DefaultDependencies=no');
  expect(watchdogUnit.match(/^After=.*$/gm)).toEqual(['After=local-fs.target']);
  expect(watchdogUnit).toContain(`ExecStart=/bin/sh ${watchdogPaths.script}\n`);
});

test('the same watch gives the same bytes, the program before the unit that runs it', () => {
  const watch = {
    deployment: DEPLOYMENT,
    limitSeconds: 900,
    rollbackScript: 'bootc rollback',
    bootScript: OSTREE_BOOT_SCRIPT,
  };
  expect(watchdogFiles(watch)).toEqual(watchdogFiles(watch));
  expect([...watchdogFiles(watch).keys()]).toEqual([watchdogPaths.script, watchdogPaths.unit]);
});

/**
 * Runs a part of the program. @param before defines what it needs in place of the host's own. @returns what it prints.
 */
function runPart(part: string, before: string, after: string): string {
  const input = `${before.trim()}\n${part}\n${after}\n`;
  return execFileSync('sh', ['-u'], { input, encoding: 'utf8' }).trim();
}

const between = (from: string, to: string) => script.slice(script.indexOf(from), script.indexOf(to));

test.each([
  ['active', 'active', 'silent', 'does not count'],
  ['active', 'none', 'silent', 'does not count'],
  ['active', 'active', 'answers', 'counts'],
  ['active', 'active', 'unknown', 'counts'],
  ['inactive', 'active', 'silent', 'counts'],
  ['active', 'inactive', 'silent', 'counts'],
  ['none', 'active', 'silent', 'counts'],
])('time with a kubelet %s, a runtime %s and an API server that %s %s', (kubelet, runtime, api, expected) => {
  const then = `counts ${kubelet} ${runtime} ${api} && echo counts || echo does not count`;
  expect(runPart(between('counts() {', 'uptime() {'), '', then)).toBe(expected);
});

const LIMIT_S = 900;
const LONGEST_S = 3_600;
/** Of the clock of these tests, between two looks. */
const LOOK_S = 60;

/**
 * @param awayUntil when the API server answers, in seconds of the boot. @returns how long it waited, and what did not
 * count.
 */
async function waited(awayUntil: number, kubelet = 'active', began = ''): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'watchdog-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const loop = between('counts() {', 'uptime() {') + between('mkdir -p ', 'persist knows_booted');
  const host = `
limit=${LIMIT_S} longest=${LONGEST_S} clock=0 since=${directory}/since alive=${directory}/alive
printf '%s' '${began}' >"$since"
uptime() { echo "$clock"; }
sleep() { clock=$((clock + ${LOOK_S})); }
kubelet() { echo ${kubelet}; }
runtime() { echo active; }
server() { :; }
state() { echo "$1"; }
api() { if [ "$clock" -lt ${awayUntil} ]; then echo silent; else echo answers; fi; }
`;
  return runPart(loop, host, 'echo "$elapsed $away"');
}

test.each([
  ['answers', 0, 'active', `${LIMIT_S} 0`],
  ['is away for half an hour', 1_800, 'active', `${LIMIT_S + 1_800} 1800`],
  ['never answers', Number.MAX_SAFE_INTEGER, 'active', `${LONGEST_S} ${LONGEST_S}`],
  ['never answers, and the kubelet does not run', Number.MAX_SAFE_INTEGER, 'inactive', `${LIMIT_S} 0`],
])('waits for the daemon where the API server %s', async (_what, awayUntil, kubelet, expected) => {
  expect(await waited(awayUntil, kubelet)).toBe(expected);
});

test('goes on where it was, when it is started again in a boot', async () => {
  expect(await waited(0, 'active', '-600 300')).toBe(`${LIMIT_S + 300} 300`);
});

const KUBECONFIG = `clusters:
- cluster:
    certificate-authority-data: c2VydmVyOiB4
    server: "https://api.example.com:6443"
  name: default
`;

test.each([
  ['nothing', undefined, ''],
  ['no kubeconfig', 'kind: Config\n', ''],
  ['a kubeconfig', KUBECONFIG, 'https://api.example.com:6443'],
  ['one without quotes', KUBECONFIG.replaceAll('"', ''), 'https://api.example.com:6443'],
])('finds the API server where the kubelet has %s', async (_what, text, expected) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'watchdog-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = path.join(directory, 'kubelet.conf');
  if (text !== undefined) await writeFile(file, text);
  const part = between('server() {', '# An answer is enough').replace('/etc/kubernetes/kubelet.conf', file);
  expect(runPart(part, '', 'server')).toBe(expected);
});

const API = between('api() {', '# Another process may hold');

test.each([
  ['000', 'silent'],
  ['503', 'silent'],
  ['200', 'answers'],
  ['401', 'answers'],
  ['', 'answers'],
])('an answer "%s" of curl means: %s', (code, expected) => {
  const curl = `curl() { printf '%s' '${code}'; }`;
  expect(runPart(API, curl, 'api https://api.example.com:6443')).toBe(expected);
});

test.each([
  ['https://api.example.com:6443', 'api.example.com 6443'],
  ['https://[fd00::1]:6443/path', 'fd00::1 6443'],
  ['https://api.example.com', 'api.example.com 443'],
])('connects to %s where there is no curl', (address, expected) => {
  const host = `command() { [ "$2" = bash ]; }
timeout() { echo "$5 $6"; }`;
  expect(runPart(API, host, `api ${address}`).split('\n')).toEqual([expected, 'answers']);
  const refused = `${host.replace('; }', '; return 1; }')}`;
  expect(runPart(API, refused, `api ${address}`)).not.toContain('answers');
});

test.each([
  ['no address', 'true', "api ''"],
  ['no program', 'false', 'api https://api.example.com'],
])('knows nothing of the API server with %s', (_what, found, call) => {
  expect(runPart(API, `command() { ${found}; }`, call)).toBe('unknown');
});

/** @param back the rollback. @param first the next boot. @returns the rollbacks that it asked for, and what follows. */
async function rolledBack(back: string, first = DEPLOYMENT): Promise<string[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'watchdog-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const host = `
deployment=${DEPLOYMENT} elapsed=900 mark=${directory}/mark alive=${directory}/alive first=${first}
knows_booted() { :; }
booted() { echo "$deployment"; }
next() { echo "$first"; }
swap() { if [ "$first" = former ]; then first=$deployment; else first=former; fi; }
back() {
  echo back
  ${back}
}
tell() { :; }
sync() { :; }
sleep() { :; }
systemctl() { echo "$1 into $first"; }
`;
  const program = script.slice(script.indexOf('# Another process may hold'), script.indexOf('back() {\n'));
  const part = `${program}\n${script.slice(script.indexOf('persist knows_booted'))}`;
  const lines = runPart(part, host, '').split('\n');
  return lines.filter((line) => !line.startsWith('no daemon of'));
}

test.each([
  ['does its work', 'swap', ['back', 'reboot into former']],
  [
    'fails once',
    'if [ -e "$mark" ]; then swap; else : >"$mark"; return 1; fi',
    ['back', 'back', 'reboot into former'],
  ],
  ['does its work, and reports a failure', 'swap; return 1', ['back', 'reboot into former']],
])('rolls back where the rollback %s', async (_case, back, expected) => {
  expect(await rolledBack(back)).toEqual(expected);
});

test('asks for no rollback where the next boot is another deployment already', async () => {
  expect(await rolledBack('swap', 'former')).toEqual(['reboot into former']);
});

test('does not reboot into the same deployment where no rollback succeeds', async () => {
  const attempt = rolledBack('return 1');
  await expect(attempt).rejects.toMatchObject({ stdout: expect.stringMatching(/^(?:back\n)+$/m) });
  await expect(attempt).rejects.toMatchObject({ stdout: expect.not.stringContaining('reboot') });
});

/** Runs the part of the program that tells, on a host with these units. @returns the mark. */
async function told(active: readonly string[], present: readonly string[]): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'watchdog-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = path.join(directory, 'mark');
  const functions = script.slice(script.indexOf('present() {'), script.indexOf('mkdir -p '));
  const program = `
deployment=d limit=900 elapsed=900 away=0 mark=${file}
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

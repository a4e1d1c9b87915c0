/**
 * Text of others reaches the terminal of whoever reviews a change or looks at a cluster: by a daemon's token, by the
 * author of a MachineConfig, by a file that is not YAML. What people reported of other tools is tried here: sequences
 * of ESC (kubectl, CVE-2021-25743), a clipboard that is written (OSC 52), a title, lines that CR overwrites or ESC
 * erases, C1 as UTF-8, text that runs backwards (Trojan Source, CVE-2021-42574), and lines that a line feed begins.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  condition,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from '../cli/cluster-with-pools.ts';
import { inputFile } from '../cli/input-file.ts';
import { machineConfig, type ShaleRun, shale } from '../cli/shale-process.ts';
import { patience } from '../fixtures/patience.ts';

const ATTACKS = [
  'up\u001b[1A\u001b[2Kgone',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]0;title\u001b\\',
  '\u001bPq\u001b\\',
  'evil\rgood',
  '\u009b2J\u009d52;c;ZXZpbA==\u009c',
  'back\b\b\b\bspace\u007f',
  'user\u202e nimda\u2066\u2069',
  'zero\u200bwidth\ufeff\u00ad',
  'line\u2028separator\u2029',
  '\u{e0041}tag',
  '\u000e\u000fshift',
];
const ATTACK = ATTACKS.join(' ');

/** Everything that no terminal may get, line feeds and tabs aside. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

function expectVisible({ stdout, stderr }: ShaleRun): void {
  expect(JSON.stringify(UNSEEN.exec(stdout + stderr))).toBe('null');
}

const contents = (text: string) => ({ source: `data:;base64,${Buffer.from(text).toString('base64')}` });
const file = (text: string) => ({ storage: { files: [{ path: '/etc/a', contents: contents(text) }] } });

test.each(['diff', 'plan'])('%s shows what a file contains', async (command) => {
  const input = machineConfig('50-a', file(`# ${ATTACK}\r\nroot=yes\r\n`));
  const run = await shale([command, '--from', 'examples', '-f', '-'], { input });
  expectVisible(run);
  expect(run.stdout).toContain(String.raw`+# up\u001b[1A\u001b[2Kgone \u001b]52;c;ZXZpbA==\u0007`);
  expect(run.stdout).toContain(String.raw`evil\rgood`);
  expect(run.stdout).toMatch(/^ *\+root=yes\\r$/m);
});

test.each(['text', 'json', 'yaml'])('diff -o %s shows kernel arguments, units and names', async (format) => {
  const config = { systemd: { units: [{ name: 'a.service', contents: `[Unit]\nDescription=${ATTACK}\n` }] } };
  const input = machineConfig('50-a', config, { kernelArguments: [`a=${ATTACK.replaceAll(/\s/g, '')}`] });
  expectVisible(await shale(['diff', '--from', 'examples', '-f', '-', '-o', format], { input }));
});

test.each(['json', 'yaml'])('render -o %s is exact', async (format) => {
  const input = machineConfig('50-a', {
    systemd: { units: [{ name: 'a.service', contents: `[Unit]\nDescription=${ATTACK}\n` }] },
  });
  const from = await inputFile('a.json', input);
  const run = await shale(['render', '--pool', 'worker', '-f', 'examples', '-f', from, '-o', format]);
  expectVisible(run);
  const { spec } = (format === 'json' ? JSON.parse(run.stdout) : parse(run.stdout)) as {
    readonly spec: { readonly config: { readonly systemd: { readonly units: readonly object[] } } };
  };
  expect(spec.config.systemd.units).toContainEqual({
    name: 'a.service',
    contents: `[Unit]\nDescription=${ATTACK}\n`,
  });
});

test('errors show the lines of a file that is not YAML', async () => {
  for (const attack of ATTACKS) {
    const broken = await inputFile('a.yaml', `a: 1\nb: [${attack}\n`);
    const run = await shale(['validate', '-f', broken]);
    expect(run.exitCode).toBe(2);
    expectVisible(run);
  }
});

test('errors name words of the command line', async () => {
  expectVisible(await shale([ATTACK]));
  expectVisible(await shale(['plan', `--${ATTACK}`]));
  expectVisible(await shale(['plan', '--pool', ATTACK, '--from', 'examples', '-f', 'examples']));
});

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  const about = (text: string) => [
    condition('Updating', 'True', text, 'NodesUpdating'),
    condition('Degraded', 'True', text),
  ];
  await cluster.addPool('worker', { conditions: about(ATTACK), observedGeneration: 1 }, 'rendered-x');
  await cluster.addNode(
    'worker-0',
    'worker',
    {},
    {
      conditions: [condition('NodeDegraded', 'True', `${ATTACK}\nworker-1  worker  updated`)],
    },
  );
});
afterAll(() => cluster.stop());

test.each([
  [['status']],
  [['status', 'worker', '-o', 'wide']],
  [['status', 'worker-0']],
  [['status', '-o', 'json']],
  [['status', '-o', 'yaml']],
  [['explain', 'worker-0']],
  [['doctor']],
  [['history', 'worker']],
  [['completion', 'names', 'pools']],
])('%s shows what a node reports', { timeout: patience(PROCESSES_MS) }, async (args) => {
  const run = await cluster.shale(...args);
  expectVisible(run);
  if (args[0] !== 'status') return;
  expect(run.stdout).toMatch(/\\(u001b|e)\[1A/);
  expect(run.stdout).not.toMatch(/^worker-1/m);
});

test('errors of a server are shown', { timeout: patience(PROCESSES_MS) }, async () => {
  const kubeconfig = path.join(cluster.dir, 'broken');
  await writeFile(kubeconfig, `clusters: [{name: "${ATTACKS[0]}`);
  signal.throwIfAborted();
  expectVisible(await shale(['status', '--kubeconfig', kubeconfig]));
});

/** The shells themselves run what completion prints: bash, zsh, fish, and kubectl's plugin. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa, execaSync } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root, shaleProcess } from './shale-process.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-completion-'));
  // What the scripts ask for names.
  const stub = [
    '#!/bin/sh',
    'case "$*" in',
    '  "completion names pools -- "*) printf "worker\\ninfra\\n" ;;',
    '  "completion names nodes -- explain") echo node-of-cluster ;;',
    '  "completion names tried-pools -- try "*) printf "99-a\\n99-b\\n" ;;',
    'esac',
  ];
  await writeFile(path.join(dir, 'shale'), stub.join('\n'), { mode: 0o755 });
  for (const shell of SHELLS) {
    await writeFile(scriptOf(shell), (await shaleProcess(['completion', shell])).stdout);
  }
});
afterAll(() => rm(dir, { recursive: true }));

function hasKubectl(): boolean {
  return execaSync('kubectl', ['version', '--client'], { reject: false }).exitCode === 0;
}

const withStub = () => ({ HOME: dir, PATH: `${dir}:${process.env['PATH']}` });
const scriptOf = (shell: string) => path.join(dir, `shale.${shell}`);

/** @returns what the shell itself offers for the last of these words. */
const offered: Record<(typeof SHELLS)[number], (words: readonly string[]) => Promise<string[]>> = {
  async bash(words) {
    const line = ['shale', ...words].map((word) => `'${word}'`).join(' ');
    const script = `source ${scriptOf('bash')}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _shale; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (await execa('bash', ['-c', script], { env: withStub() })).stdout.split('\n');
  },
  async zsh(words) {
    // compadd and _describe work within completion only; what they are given is what is offered.
    const script = `compdef() { :; }
      compadd() { shift; print -l -- "$@"; }
      _describe() { local name=\${@[-1]}; print -l -- \${\${(P)name}%%:*}; }
      source ${scriptOf('zsh')}
      words=(shale ${words.map((word) => `'${word}'`).join(' ')}); CURRENT=\${#words}; _shale`;
    return (await execa('zsh', ['-fc', script], { env: withStub() })).stdout.split('\n');
  },
  async fish(words) {
    const script = `source ${scriptOf('fish')}; complete -C 'shale ${words.join(' ')}'`;
    const { stdout } = await execa('fish', ['--no-config', '-c', script], { env: withStub() });
    return stdout.split('\n').map((line) => line.split('\t')[0] ?? '');
  },
};

describe.each(SHELLS)('%s', (shell) => {
  test.each([
    [
      ['maintenance', ''],
      ['start', 'end', 'list'],
    ],
    [
      ['status', '-o', ''],
      ['table', 'wide', 'json', 'yaml'],
    ],
  ])('offers for %j', async (words, expected) => {
    expect((await offered[shell](words)).toSorted()).toEqual(expected.toSorted());
  });

  test.each([
    [
      ['history', ''],
      ['infra', 'worker'],
    ],
    [['history', 'w'], ['worker']],
    [['enable', '--pool', 'w'], ['worker']],
    [['explain', ''], ['node-of-cluster']],
    [
      ['try', 'confirm', ''],
      ['99-a', '99-b'],
    ],
    [['try', 'cancel', '99-a', '99-b'], ['99-b']],
  ])('offers names of the cluster for %j', async (words, expected) => {
    const found = await offered[shell](words);
    // zsh itself drops what doesn't begin with the word.
    const typed = words.at(-1) ?? '';
    expect(found.filter((name) => name.startsWith(typed)).toSorted()).toEqual(expected);
  });

  test('offers commands and flags', async () => {
    expect(await offered[shell]([''])).toEqual(expect.arrayContaining(['plan', 'doctor', 'completion']));
    const flags = await offered[shell](['sandbox', 'tour', '--k']);
    expect(flags).toContain('--keep');
    // Of two commands of one name the right one.
    expect(await offered[shell](['sandbox', 'status', '--w'])).not.toContain('--watch');
  });
});

test.skipIf(!hasKubectl())(
  'kubectl finds shale, and completes it (skipped where there is none)',
  async () => {
    const env = { PATH: `${path.join(root, 'bin')}:${process.env['PATH']}`, HOME: dir };
    const listed = await execa('kubectl', ['plugin', 'list'], { env, reject: false });
    expect(listed.stdout).toContain(path.join(root, 'bin/kubectl-shale'));
    const help = await execa('kubectl', ['shale', 'status', '--help'], { env });
    expect(help.stdout).toContain('--lease-namespace');
    const completed = await execa('kubectl', ['__complete', 'shale', 'maintenance', 'st'], { env });
    expect(completed.stdout).toBe(
      'start\tFlag a node, acquire its lease, cordon it and drain it, as soon as that is safe.\n:4',
    );
  },
);

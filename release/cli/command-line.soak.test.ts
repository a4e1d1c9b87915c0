/** The command line as one file, made of the Node that runs this test, and run away from the checkout. */
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SHALE_VERSION } from '../../api/names.ts';
import { digestOf } from '../../image/digest.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { everyCase, isDrawn } from '../../test/fixtures/sample.ts';
import { startApi } from '../../workshop/apiserver/conformance/api.ts';
import { type CommandLine, commandLine } from './command-line.ts';
import { compilesFor } from './executable.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const HERE = ['amd64', 'arm64'].filter(compilesFor);
const PAGE = '<!doctype html><title>page of a test</title>\n';

// Making one takes 8 s of CPU time.
describe.runIf(HERE.length > 0 && isDrawn('command line as one file'))('the command line as one file', () => {
  const signal = deadline(300_000);
  let dir: string;
  let shale: string;
  let made: CommandLine;

  const make = async () => {
    const program = await readFile(process.execPath);
    const from = { name: 'node of this test', digest: digestOf(program) };
    return commandLine(
      {
        root: ROOT,
        page: path.join(dir, 'page'),
        architectures: HERE,
        node: async () => ({ program, version: process.versions.node, license: '', from }),
      },
      signal,
    );
  };

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-command-line-'));
    await mkdir(path.join(dir, 'page'));
    await writeFile(path.join(dir, 'page/index.html'), PAGE);
    made = await make();
    await mkdir(path.join(dir, 'bin'));
    shale = path.join(dir, 'bin/shale');
    await writeFile(shale, made.executables[0]?.content ?? '');
    await chmod(shale, 0o755);
    await symlink('shale', path.join(dir, 'bin/kubectl-shale'));
  }, patience(240_000));
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** Node would end at once if it heeded these options. */
  const start = (file: string, args: readonly string[], PATH = process.env['PATH']) =>
    execa(file, args, {
      cwd: dir,
      cancelSignal: signal,
      env: { PATH, NODE_OPTIONS: '--require /does/not/exist' },
    });

  test('runs as shale and as a plugin of kubectl', async () => {
    expect((await start(shale, ['--version'])).stdout).toBe(SHALE_VERSION);
    const plugin = await start('kubectl', ['shale', 'status', '--help'], `${dir}/bin:${process.env['PATH']}`);
    const checkout = await execa(path.join(ROOT, 'bin/shale'), ['status', '--help']);
    expect(plugin.stdout).toBe(checkout.stdout);
    await expect(start(shale, ['plan', '--unknown'])).rejects.toMatchObject({ exitCode: 2 });
  });

  test('predicts a change, and serves the page that is in it', async () => {
    const examples = path.join(ROOT, 'examples');
    const { stdout } = await start(shale, [
      'plan',
      '--from',
      examples,
      '-f',
      path.join(examples, 'tour/chrony-v2.yaml'),
    ]);
    expect(stdout).toContain('/etc/chrony.conf');
    const api = await startApi();
    try {
      const kubeconfig = path.join(dir, 'kubeconfig');
      await writeFile(kubeconfig, api.kubeconfig(), { mode: 0o600 });
      await execa('kubectl', ['--kubeconfig', kubeconfig, 'apply', '-k', path.join(ROOT, 'manifests/crds')]);
      const serving = start(shale, ['ui', '--kubeconfig', kubeconfig]);
      try {
        const lines = createInterface(serving.stdout)[Symbol.asyncIterator]();
        const { value: address = '' } = await lines.next();
        expect(await (await fetch(address, { signal })).text()).toBe(PAGE);
      } finally {
        serving.kill();
        await Promise.allSettled([serving]);
      }
    } finally {
      await api.stop();
    }
  });

  test.runIf(everyCase)(
    'has the same bytes when it is made again',
    { timeout: patience(240_000) },
    async () => {
      const again = await make();
      expect(again.executables[0]?.content.equals(made.executables[0]?.content ?? Buffer.alloc(0))).toBe(
        true,
      );
      expect(again).toMatchObject({ installed: made.installed, licenses: made.licenses });
    },
  );

  test('comes with the licence and the entry of each library', () => {
    const { packages } = JSON.parse(made.installed);
    expect(Object.keys(packages)).toEqual(
      expect.arrayContaining(['node_modules/commander', `node_modules/node-linux-${process.arch}`]),
    );
    expect(Object.keys(packages)).not.toContain('node_modules/vite');
    expect(made.licenses).toMatch(/^yaml \d+\.\d+\.\d+ \(ISC\)\n\n.*Permission to use/ms);
  });
});

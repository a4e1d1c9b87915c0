import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { NodeConfig } from '../../../machineconfig/node-config.ts';
import { configOf, fileOf } from '../../../test/fixtures/configs.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { verifyConfig, written } from '../../../test/fixtures/standard-content.ts';
import { labelDrifts } from './label-drift.ts';
import { verifyContent } from './verify-content.ts';

/** Files belong to whoever runs the test. */
const OWN = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
const signal = deadline(30_000);

let root: string;
const at = (name: string) => path.join(root, name);
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-verify-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(at('etc'));
});

function config(files: Readonly<Record<string, string>>, more: Partial<NodeConfig> = {}): NodeConfig {
  const entries = Object.entries(files).map(([name, text]) => [name, fileOf(name, text, OWN)] as const);
  return configOf({}, { files: new Map(entries), ...more });
}
const drifts = async (wanted: NodeConfig) =>
  (await verifyConfig(root, wanted)).map(({ path: name, what }) => `${name}: ${what}`);

test('paths are compared in their order, also below directories that are missing', async () => {
  await writeFile(at('etc/right'), 'text');
  await writeFile(at('etc/wrong'), 'other');
  const wanted = config({ '/etc/wrong': 'text', '/etc/right': 'text', '/etc/none/file': '', '/etc/a': '' });
  expect(await drifts(wanted)).toEqual(['/etc/a: missing', '/etc/none/file: missing', '/etc/wrong: content']);
});

test('a file of another size is not read, one of the same size is', async () => {
  await writeFile(at('etc/file'), 'longer than it should be');
  const [drift] = await verifyConfig(root, config({ '/etc/file': 'text' }));
  expect(drift?.message).toBe('/etc/file: has 24 bytes, but should have 4');
  await writeFile(at('etc/file'), 'txet');
  const [other] = await verifyConfig(root, config({ '/etc/file': 'text' }));
  expect(other?.message).toContain('has sha256');
});

test('what lies behind a link that anybody could have made can not be reached', async () => {
  await mkdir(at('etc/shared'));
  await chmod(at('etc/shared'), 0o777);
  await symlink('/etc', at('etc/shared/link'));
  const wanted = config({ '/etc/shared/link/file': 'text' });
  const [drift] = await verifyConfig(root, wanted);
  expect(drift).toMatchObject({ path: '/etc/shared/link/file', what: 'kind' });
  expect(drift?.message).toMatch(/^\/etc\/shared\/link\/file: can't be reached: .* is a symbolic link/);
  // Drift of another kind than its label.
  const compared: (readonly string[])[] = [];
  const wrongLabels = async (names: readonly string[]) => {
    compared.push(names);
    return [];
  };
  expect(await labelDrifts({ host: { root }, wrongLabels }, written(wanted), signal)).toEqual([]);
  expect(compared).toEqual([[]]);
});

test('what can not be looked at is no drift', async () => {
  const wanted = config({ [`/etc/${'x'.repeat(300)}/file`]: 'text' });
  await expect(verifyConfig(root, wanted)).rejects.toThrow('ENAMETOOLONG');
  const host = { host: { root }, wrongLabels: async () => [] };
  const labels = labelDrifts(host, written(wanted), signal);
  await expect(labels).rejects.toThrow('ENAMETOOLONG');
});

test('an owner that the node does not know is told in layered mode, whatever is there', async () => {
  const file = fileOf('/etc/file', 'text', { user: { name: 'nobody-here' } });
  const wanted = configOf({}, { files: new Map([[file.path, file]]) });
  expect(await verifyContent({ root }, { config: wanted, delivery: 'Layered' }, signal)).toEqual([
    { path: '/etc/file', what: 'account', message: expect.stringContaining('user nobody-here is neither') },
  ]);
});

test('a password is compared where the config has one, among the paths', async () => {
  await writeFile(at('etc/passwd'), 'core:x:1000:1000::/home/core:/bin/sh\n');
  await writeFile(at('etc/shadow'), 'core:$6$other:20000::::::\n');
  const passwordHashes = new Map([['core', '$6$hash']]);
  expect(await drifts(config({ '/etc/z': 'text', '/etc/a': 'text' }, { passwordHashes }))).toEqual([
    '/etc/a: missing',
    '/etc/shadow: content',
    '/etc/z: missing',
  ]);
  await rm(at('etc/shadow'));
  await expect(verifyConfig(root, config({}, { passwordHashes }))).rejects.toThrow(
    '/etc/shadow: is not there',
  );
  expect(await drifts(config({}))).toEqual([]);
});

test('nothing more is compared once the daemon is to end', async () => {
  const options = { signal: AbortSignal.abort(new Error('ending')) };
  await expect(verifyConfig(root, config({ '/etc/file': 'text' }), options)).rejects.toThrow('ending');
  expect(await verifyConfig(root, config({}), options)).toEqual([]);
});

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasSelinuxPolicy, selinuxType } from './selinux-policy.ts';

test.each([
  ['SELINUX=enforcing\nSELINUXTYPE=targeted\n', 'targeted'],
  ['# SELINUXTYPE=mls\n  SELINUXTYPE = minimum \n', 'minimum'],
  ['SELINUXTYPE=../../root\n', undefined],
  ['SELINUXTYPE=\n', undefined],
  ['OTHERSELINUXTYPE=targeted\n', undefined],
  ['', undefined],
])('the policy that %j names is %s', (config, expected) => {
  expect(selinuxType(config)).toBe(expected);
});

const CONFIG = { config: 'SELINUXTYPE=lab\n' };
const POLICY = { 'lab/policy/policy.33': '' };
const CONTEXTS = { 'lab/contexts/files/file_contexts': '' };

test.each<[string, Readonly<Record<string, string>>, boolean]>([
  ['a policy with its file contexts', { ...CONFIG, ...POLICY, ...CONTEXTS }, true],
  ['nothing of SELinux', {}, false],
  ['a policy that no config names', { ...POLICY, ...CONTEXTS }, false],
  ['the config of another policy', { config: 'SELINUXTYPE=other\n', ...POLICY, ...CONTEXTS }, false],
  ['a config alone', CONFIG, false],
  ['a policy without file contexts', { ...CONFIG, ...POLICY }, false],
  ['file contexts without a policy', { ...CONFIG, ...CONTEXTS }, false],
  [
    'file contexts of users alone',
    { ...CONFIG, ...POLICY, 'lab/contexts/files/file_contexts.homedirs': '' },
    false,
  ],
  ['a file in the place of the policy', { ...CONFIG, ...CONTEXTS, 'lab/policy/modules': '' }, false],
])('an image with %s', async (_what, files, expected) => {
  const tree = await mkdtemp(path.join(tmpdir(), 'selinux-'));
  onTestFinished(() => rm(tree, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(tree, 'usr/etc/selinux', name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  expect(await hasSelinuxPolicy(tree)).toBe(expected);
});

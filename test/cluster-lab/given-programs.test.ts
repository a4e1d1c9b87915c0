import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findPrograms, GIVEN, POLICY_ENFORCER, tooOldContainerd } from './given-programs.ts';

async function directoryWith(names: readonly string[], mode = 0o755): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'given-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of names) {
    await writeFile(path.join(directory, name), '');
    await chmod(path.join(directory, name), mode);
  }
  return directory;
}

test('programs are taken from the given directory first, and then from the search path', async () => {
  const assets = await directoryWith(['etcd', 'kube-apiserver']);
  const installed = await directoryWith(GIVEN);
  const found = findPrograms(assets, `/nowhere:${installed}`);
  expect(found).toMatchObject({
    etcd: path.join(assets, 'etcd'),
    kubelet: path.join(installed, 'kubelet'),
  });
  expect(findPrograms(undefined, installed)).toMatchObject({ etcd: path.join(installed, 'etcd') });
});

test('what enforces NetworkPolicies may be given', async () => {
  const installed = await directoryWith(GIVEN);
  const assets = await directoryWith([POLICY_ENFORCER]);
  expect(findPrograms(undefined, installed)).not.toHaveProperty(POLICY_ENFORCER);
  expect(findPrograms(assets, installed)).toHaveProperty(POLICY_ENFORCER, path.join(assets, POLICY_ENFORCER));
});

test('programs that are nowhere, or can’t be run, are named', async () => {
  const assets = await directoryWith(GIVEN.filter((name) => name !== 'kubelet'));
  const unusable = await directoryWith(['kubelet'], 0o644);
  expect(findPrograms(assets, `:${unusable}`)).toEqual({ missing: ['kubelet'] });
});

test.each([
  ['containerd github.com/containerd/containerd/v2 2.1.9+unknown \n', undefined],
  ['containerd github.com/containerd/containerd/v2 v2.0.0 207ad711', undefined],
  [
    'containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n',
    'containerd is 1.6.20~ds1, and kubelets need 2.0 or newer',
  ],
  ['what?\n', 'containerd --version prints "what?"'],
])('%s', (printed, expected) => {
  expect(tooOldContainerd(printed)).toBe(expected);
});

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { missingPrograms, PROVIDERS } from './given-programs.ts';

test('what a directory of Cluster API’s programs lacks is named', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'capi-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of ['etcd', 'kube-apiserver', ...PROVIDERS]) {
    await writeFile(path.join(directory, name), '', { mode: 0o755 });
  }
  for (const provider of PROVIDERS) await mkdir(path.join(directory, 'crds', provider), { recursive: true });
  await mkdir(path.join(directory, 'webhooks'));
  await writeFile(path.join(directory, 'webhooks', 'cluster-api-core.yaml'), '');
  expect(missingPrograms(directory)).toEqual([
    'webhooks/kubeadm-bootstrap.yaml',
    'webhooks/kubeadm-control-plane.yaml',
  ]);
});

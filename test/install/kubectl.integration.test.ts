import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, START_MS, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { patience } from '../fixtures/patience.ts';
import { isOnPath } from './on-path.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const dir = mkdtempSync(path.join(tmpdir(), 'shale-kubectl-'));
let api: Api;

beforeAll(async () => {
  api = await startApi();
  writeFileSync(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
}, START_MS);
afterAll(async () => {
  await api.stop();
  rmSync(dir, { recursive: true });
});

async function kubectl(...args: string[]): Promise<string> {
  const env = { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir };
  return (await execa('kubectl', args, { env, cwd: ROOT, timeout: patience(120_000) })).stdout;
}

test.skipIf(!isOnPath('kubectl'))('kubectl applies the manifests and the examples, twice', async () => {
  const first = await kubectl('apply', '-k', 'manifests/base');
  expect(first.split('\n').every((line) => line.endsWith(' created'))).toBe(true);
  const second = await kubectl('apply', '-k', 'manifests/base');
  expect(second.split('\n').every((line) => line.endsWith(' unchanged'))).toBe(true);
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=20s');
  await kubectl('apply', '-f', 'examples');
  expect(await kubectl('get', 'mc', '-o', 'name')).toContain(
    'machineconfig.machineconfiguration.openshift.io/20-worker-chrony',
  );
  const kinds = 'mcp,mc,mosc,mosb,mcn,machineconfigurations,nodes';
  expect((await kubectl('get', kinds)).split('\n')[0]).toContain('NAME');
  expect(await kubectl('explain', 'machineconfigpool.spec.maxUnavailable')).toContain(
    'nodes that may be unavailable at once',
  );
});

/** What an API server that has Shale's definitions and admission policies says to the objects in the pages. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { patience } from '../fixtures/patience.ts';
import { isOnPath } from '../install/on-path.ts';
import { objectsIn } from './known-objects.ts';
import { allPages, ROOT } from './pages.ts';

const MANIFESTS = path.join(ROOT, 'manifests');
const KUBECTL_MS = 120_000;
const pages = allPages().flatMap(({ file, blocks }): [string, string][] => {
  const objects = blocks
    .filter(({ language, words }) => language === 'yaml' && !words.includes('file'))
    .flatMap(({ text }) => objectsIn(text))
    .filter(({ kind }) => kind !== 'Kustomization');
  return objects.length === 0 ? [] : [[file, objects.map((object) => JSON.stringify(object)).join('\n')]];
});
let api: Api;
let dir: string;

async function kubectl(args: readonly string[], input = ''): Promise<string> {
  const env = { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir };
  return (await execa('kubectl', args, { env, input })).stdout;
}

describe.runIf(isOnPath('kubectl'))('kubectl (skipped where there is none)', () => {
  beforeAll(async () => {
    api = await startApi();
    dir = await mkdtemp(path.join(tmpdir(), 'shale-docs-yaml-'));
    await writeFile(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
    await kubectl(['apply', '-k', path.join(MANIFESTS, 'crds')]);
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    await kubectl(['apply', '-k', path.join(MANIFESTS, 'overlays/bootc')]);
  }, patience(KUBECTL_MS));
  afterAll(async () => {
    await api.stop();
    await rm(dir, { recursive: true, force: true });
  });

  test.each(pages)(
    '%s has objects that the API server takes',
    { timeout: patience(KUBECTL_MS) },
    async (_, objects) => {
      const told = await kubectl(['apply', '--dry-run=server', '-f', '-'], objects);
      expect(told.split('\n').filter((line) => !line.endsWith('(server dry run)'))).toEqual([]);
    },
  );

  test('and one that it does not', { timeout: patience(KUBECTL_MS) }, async () => {
    const wrong = {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: 'x' },
    };
    await expect(kubectl(['apply', '--dry-run=server', '-f', '-'], JSON.stringify(wrong))).rejects.toThrow(
      'cluster',
    );
  });
});

/** What docs/install.md names is there, and an API server takes its pool. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { startClusterUnderTest } from '../e2e/cluster-under-test.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const text = readFileSync(path.join(ROOT, 'docs/install.md'), 'utf8');
const blocks = [...text.matchAll(/^```yaml[^\n]*\n(.*?)^```/gms)].map(([, yaml = '']) => parse(yaml));

test('the pool of docs/install.md is taken by an API server', async () => {
  const { signal } = new AbortController();
  const cluster = await startClusterUnderTest(signal);
  try {
    const pool = blocks.find(({ kind }) => kind === 'MachineConfigPool');
    const made = await cluster.client.create(MachineConfigPools, pool, { signal });
    expect(made.spec).toMatchObject({ paused: true });
  } finally {
    await cluster.stop();
  }
});

test('overlays, components and files that docs/install.md names are there', async () => {
  const overlays = [...text.matchAll(/^\| `(manifests\/overlays\/[a-z-]+)` *\|/gm)].map(([, name]) => name);
  const components = [...text.matchAll(/^\| `([a-z-]+)` +\|/gm)].map(
    ([, name]) => `manifests/components/${name}`,
  );
  expect(overlays.toSorted()).toEqual(namesIn('manifests/overlays'));
  expect(components.toSorted()).toEqual(namesIn('manifests/components'));
  for (const directory of [...overlays, ...components]) {
    expect(readFileSync(path.join(ROOT, directory ?? '', 'kustomization.yaml'), 'utf8')).toContain('kind:');
  }
  const links = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(([, link = '']) => path.join(ROOT, 'docs', link));
  for (const file of links) expect(readFileSync(file, 'utf8')).not.toBe('');
});

function namesIn(directory: string): string[] {
  return readdirSync(path.join(ROOT, directory))
    .sort()
    .map((name) => `${directory}/${name}`);
}

import { expect, test } from 'vitest';
import { chartFiles } from '../charts/chart-files.ts';
import { crdFiles } from './crd-files.ts';
import { staleFiles } from './generate.ts';

test('manifests/crds is what api/ says, and charts/shale what manifests/ says', async () => {
  expect(await staleFiles()).toEqual([]);
});

test('generation is deterministic', async () => {
  expect([...crdFiles()]).toEqual([...crdFiles()]);
  expect([...(await chartFiles())]).toEqual([...(await chartFiles())]);
});

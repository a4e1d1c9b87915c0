import { expect, test } from 'vitest';
import { crdFiles } from './crd-files.ts';
import { staleFiles } from './generate.ts';

test('manifests/crds and the reference are what the code says', async () => {
  expect(await staleFiles()).toEqual([]);
});

test('generation is deterministic', () => {
  expect([...crdFiles()]).toEqual([...crdFiles()]);
});

/** The sandbox's registry over TLS: pushed twice, read back by digest. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parseReference } from '../../image/reference.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { stockImage } from './node/stock-image.ts';
import { pushImage, startRegistry } from './registry.ts';

test('an image pushed twice is one image, read back over TLS by its digest', async () => {
  const signal = deadline(20_000);
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-registry-'));
  const registry = await startRegistry(dir);
  try {
    const pushed = await pushImage(registry, 'os/stock', { entries: stockImage() }, signal);
    expect(await pushImage(registry, 'os/stock', { entries: stockImage() }, signal)).toBe(pushed);
    const manifest = await registry.client.getManifest(parseReference(pushed), signal);
    expect(pushed).toBe(`${registry.host}/os/stock@${manifest.digest}`);
  } finally {
    await registry.stop();
    await rm(dir, { recursive: true });
  }
});

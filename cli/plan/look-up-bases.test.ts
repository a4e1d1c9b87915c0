import { expect, test } from 'vitest';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { aRenderedConfig } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { lookUpBases } from './look-up-bases.ts';

const signal = deadline(60_000);
const rendered = aRenderedConfig('rendered-worker-1');

test('tells for each pool what a tag stands for, and why it is not known', async () => {
  const registry = await MemoryRegistry.start();
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const name = (tag: string) => `${host}/os/stock:${tag}`;
  const digest = await pushBaseImage(client, name('1'), signal);
  const arm = await pushBaseImage(client, name('arm'), signal, 'arm64');
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const manifests = [
    ['amd64', digest],
    ['arm64', arm],
  ].map(([architecture, own]) => ({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    digest: own,
    size: 1,
    platform: { os: 'linux', architecture },
  }));
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }));
  const index = await client.putManifest(parseReference(name('index')), { mediaType, bytes }, signal);
  const request = (pool: string, base: string) => ({ pool, name: base, secret: undefined, rendered });
  const lookups = await lookUpBases(
    [
      request('worker', name('1')),
      request('worker', name('index')),
      request('worker', name('missing')),
      request('infra', 'no-host:1'),
    ],
    { flags: { plainHttp: [host] } },
    signal,
  );
  const worker = lookups.get('worker');
  expect(worker?.get(name('1'))).toEqual({ kind: 'found', digest, platforms: new Map() });
  expect(worker?.get(name('index'))).toEqual({
    kind: 'found',
    digest: index,
    platforms: new Map([
      ['amd64', digest],
      ['arm64', arm],
    ]),
  });
  expect(worker?.get(name('missing'))).toEqual({ kind: 'unknown', why: expect.stringContaining('404') });
  expect(lookups.get('infra')?.get('no-host:1')).toEqual({
    kind: 'unknown',
    why: expect.stringContaining('has no registry host'),
  });
});

test('passes on that it is aborted', async () => {
  const aborted = AbortSignal.abort(new Error('interrupted'));
  const request = { pool: 'worker', name: 'r.invalid/os:1', secret: undefined, rendered };
  await expect(lookUpBases([request], { flags: { plainHttp: [] } }, aborted)).rejects.toThrow('interrupted');
});

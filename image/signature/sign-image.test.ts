import { expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from '../registry/registry-client.ts';
import { pushAttached, readAttached } from './attached-layers.ts';
import { countSignatures, isImageSignedBy, signImage } from './sign-image.ts';

const signal = deadline(60_000);
const PAYLOAD = 'application/vnd.dev.cosign.simplesigning.v1+json';

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const at = parseReference(`${registry.host}/os/worker:1`);
  const digest = await pushBaseImage(client, `${registry.host}/os/worker:1`, signal);
  return { registry, client, at, digest, key: newSigningKey() };
}

test.each([
  ['has no signature', PAYLOAD, 'content', {}],
  ['is of another type', 'text/plain', 'content', { 'dev.cosignproject.cosign/signature': 'AAAA' }],
  ['is no payload', PAYLOAD, 'no JSON', { 'dev.cosignproject.cosign/signature': 'AAAA' }],
  [
    'is larger than any payload',
    PAYLOAD,
    'x'.repeat(64 * 1024 + 1),
    { 'dev.cosignproject.cosign/signature': 'AAAA' },
  ],
])(
  'a layer that %s is passed over, and stays beside the signature',
  async (_what, mediaType, text, annotations) => {
    const { client, at, digest, key } = await setUp();
    const place = { at, digest, kind: 'sig' } as const;
    const odd = { before: [], content: Buffer.from(text), mediaType, annotations };
    await pushAttached(client, place, odd, signal);
    const given = { digest, publicKey: key.publicKey };
    expect(await isImageSignedBy(client, at, given, signal)).toBe(false);
    expect(await signImage(client, at, { digest, key }, signal)).toBe(true);
    expect(await isImageSignedBy(client, at, given, signal)).toBe(true);
    expect(await signImage(client, at, { digest, key }, signal)).toBe(false);
    expect(await countSignatures(client, at, digest, signal)).toBe(2);
    expect(await readAttached(client, place, signal)).toHaveLength(2);
  },
);

test('a signature of the image under another name is none', async () => {
  const { client, at, digest, key } = await setUp();
  const other = { ...at, repository: 'os/worker-2' };
  await pushBaseImage(client, `${at.registry}/os/worker-2:1`, signal);
  await signImage(client, at, { digest, key }, signal);
  const [layer] = await readAttached(client, { at, digest, kind: 'sig' }, signal);
  const chunks: Uint8Array[] = [];
  if (layer !== undefined) for await (const chunk of client.readBlob(at, layer, signal)) chunks.push(chunk);
  const annotations = layer?.['annotations'] as Record<string, string>;
  const moved = { before: [], content: Buffer.concat(chunks), mediaType: PAYLOAD, annotations };
  await pushAttached(client, { at: other, digest, kind: 'sig' }, moved, signal);
  const given = { digest, publicKey: key.publicKey };
  expect(await isImageSignedBy(client, other, given, signal)).toBe(false);
  expect(await isImageSignedBy(client, at, given, signal)).toBe(true);
});

import { expect, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { pushAttached, readAttached, readContent } from '../attached-layers.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from '../registry/registry-client.ts';
import { countSignatures, isImageSignedBy, signImage } from './sign-image.ts';

const signal = deadline(60_000);
const PAYLOAD = 'application/vnd.dev.cosign.simplesigning.v1+json';

interface Payload {
  readonly critical: object;
}
const imageOf = (digest: Digest) => ({ 'docker-manifest-digest': digest });

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

test.each<[string, (payload: Payload) => unknown]>([
  ['is no such signature', ({ critical }) => ({ critical: { ...critical, type: 'another' } })],
  ['names no image', ({ critical }) => ({ critical: { ...critical, identity: {} } })],
  ['names no digest', ({ critical }) => ({ critical: { ...critical, image: {} } })],
  ['is of another digest', ({ critical }) => ({ critical: { ...critical, image: imageOf(digestOf('x')) } })],
  ['has no such fields', () => ({})],
])('what the key signed and %s proves nothing', async (_what, change) => {
  const { client, at, digest, key } = await setUp();
  const name = `${at.registry}/${at.repository}:1`;
  const identity = { 'docker-reference': name };
  const payload = {
    critical: { identity, image: imageOf(digest), type: 'cosign container image signature' },
  };
  const place = { at, digest, kind: 'sig' } as const;
  const given = { digest, publicKey: key.publicKey };
  const push = (content: Buffer) => {
    const annotations = {
      'dev.cosignproject.cosign/signature': Buffer.from(key.sign(content)).toString('base64'),
    };
    return pushAttached(client, place, { before: [], content, mediaType: PAYLOAD, annotations }, signal);
  };
  await push(Buffer.from(JSON.stringify(change(payload))));
  expect(await isImageSignedBy(client, at, given, signal)).toBe(false);
  await push(Buffer.from(JSON.stringify(payload)));
  expect(await isImageSignedBy(client, at, given, signal)).toBe(true);
});

test('a signature names the tag under which the image was given, and without a tag its repository', async () => {
  const { client, at, digest, key } = await setUp();
  const { tag: _tag, ...repository } = at;
  for (const [given, name] of [
    [at, `${at.registry}/os/worker:1`],
    [repository, `${at.registry}/os/worker`],
  ] as const) {
    const place = { at: given, digest, kind: 'sig' } as const;
    const signer = given === at ? key : newSigningKey();
    await signImage(client, given, { digest, key: signer }, signal);
    const layer = (await readAttached(client, place, signal)).at(-1);
    if (layer === undefined) throw new Error('nothing was attached');
    const content = await readContent(client, place, { layer, mediaType: PAYLOAD, maxBytes: 4096 }, signal);
    expect(JSON.parse(Buffer.from(content ?? []).toString())).toMatchObject({
      critical: { identity: { 'docker-reference': name } },
    });
  }
});

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

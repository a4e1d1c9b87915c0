/** openssl verifies the envelope that the registry serves; DSSE's own example is the format's proof. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { newSigningKey, startRegistryWithImage } from '../../test/fixtures/registry/registry-with-image.ts';
import { digestTag } from '../artifact.ts';
import { deleteWithReferrers, manifestAt } from '../referrers.ts';
import { signedBytes, signStatement, statementsSignedBy } from './sign-statement.ts';

const signal = deadline(300_000);
const statement = Buffer.from('{"_type":"https://in-toto.io/Statement/v1"}');
const predicateType = 'https://slsa.dev/provenance/v1';

async function imageInRegistry() {
  const image = await startRegistryWithImage(signal);
  onTestFinished(() => image.stop());
  return { ...image, tag: { ...image.at, tag: `${digestTag(image.digest)}.att` } };
}

test("what is signed is DSSE's own example", () => {
  // protocol.md, "Test Vectors"
  const bytes = signedBytes('http://example.com/HelloWorld', Buffer.from('hello world'));
  expect(Buffer.from(bytes).toString()).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
});

test('a statement is found by the key that signed it, and by no other', async () => {
  const { client, at, digest } = await imageInRegistry();
  const key = newSigningKey();
  expect(await signStatement(client, at, { digest, statement, predicateType, key }, signal)).toBe(true);
  const by = async (publicKey: string) =>
    (await statementsSignedBy(client, at, { digest, publicKey }, signal)).map((bytes) =>
      Buffer.from(bytes).toString(),
    );
  expect(await by(key.publicKey)).toEqual([statement.toString()]);
  expect(await by(newSigningKey().publicKey)).toEqual([]);
});

test('openssl verifies the envelope that the registry serves', async () => {
  const { client, at, digest, dir } = await imageInRegistry();
  const key = newSigningKey();
  await signStatement(client, at, { digest, statement, predicateType, key }, signal);
  const v2 = `http://${at.registry}/v2/${at.repository}`;
  const manifest = (await (
    await fetch(`${v2}/manifests/${digestTag(digest)}.att`, {
      headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
    })
  ).json()) as { layers: { digest: string }[] };
  expect(manifest.layers).toMatchObject([
    {
      mediaType: 'application/vnd.dsse.envelope.v1+json',
      annotations: { predicateType, 'dev.cosignproject.cosign/signature': '' },
    },
  ]);
  const envelope = (await (await fetch(`${v2}/blobs/${manifest.layers[0]?.digest}`)).json()) as {
    payload: string;
    signatures: { sig: string }[];
  };
  const payload = Buffer.from(envelope.payload, 'base64');
  const file = (name: string) => path.join(dir, name);
  await writeFile(file('key.pub'), key.publicKey);
  await writeFile(file('sig'), Buffer.from(envelope.signatures[0]?.sig ?? '', 'base64'));
  await writeFile(
    file('signed'),
    `DSSEv1 28 application/vnd.in-toto+json ${payload.length} ${payload.toString()}`,
  );
  const args = ['dgst', '-sha256', '-verify', file('key.pub'), '-signature', file('sig'), file('signed')];
  expect((await execa('openssl', args, { reject: false })).stdout).toBe('Verified OK');
});

test('a statement that a key signed is not signed again; another one is added', async () => {
  const { client, at, digest, tag } = await imageInRegistry();
  const key = newSigningKey();
  const given = { digest, statement, predicateType, key };
  await signStatement(client, at, given, signal);
  const first = await client.getManifest(tag, signal);
  expect(await signStatement(client, at, given, signal)).toBe(false);
  expect((await client.getManifest(tag, signal)).digest).toBe(first.digest);
  await signStatement(client, at, { ...given, statement: Buffer.from('{}') }, signal);
  const { publicKey } = key;
  expect(await statementsSignedBy(client, at, { digest, publicKey }, signal)).toHaveLength(2);
});

test.each(['no JSON', '{}', '{"payloadType":"application/vnd.in-toto+json","payload":"?","signatures":[]}'])(
  'an envelope of %s is passed over',
  async (text) => {
    const { client, at, digest, tag } = await imageInRegistry();
    const key = newSigningKey();
    await signStatement(client, at, { digest, statement, predicateType, key }, signal);
    const { bytes, mediaType } = await client.getManifest(tag, signal);
    const content = Buffer.from(text);
    const manifest = JSON.parse(Buffer.from(bytes).toString()) as { layers: object[] };
    const { digest: blob } = await client.putBlob(at, content, signal);
    manifest.layers.unshift({ ...manifest.layers[0], digest: blob, size: content.length });
    await client.putManifest(tag, { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) }, signal);
    const { publicKey } = key;
    expect(await statementsSignedBy(client, at, { digest, publicKey }, signal)).toHaveLength(1);
  },
);

test('signed statements go with their image', async () => {
  const { client, at, digest, tag } = await imageInRegistry();
  await signStatement(client, at, { digest, statement, predicateType, key: newSigningKey() }, signal);
  await deleteWithReferrers(client, at, digest, signal);
  expect(await manifestAt(client, tag, signal)).toBeUndefined();
});

/** Someone who may push to a pool's repository: images of theirs are not staged, whatever signs them. */
import { expect, onTestFinished, test } from 'vitest';
import { signingKeyName, signingKeysVersion } from '../../api/image-signing.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { requireSignature } from '../../daemon/os/require-signature.ts';
import { digestTag } from '../../image/artifact.ts';
import { signImage } from '../../image/signature/sign-image.ts';
import { answeringClient } from '../fixtures/answering-client.ts';
import { deadline } from '../fixtures/patience.ts';
import { newSigningKey, startRegistryWithImage } from '../fixtures/registry/registry-with-image.ts';

const signal = deadline(120_000);

/** A pool's repository that the attacker may push to, and a node whose operator named the cluster's key. */
async function poolsRepository() {
  const registry = await startRegistryWithImage(signal);
  onTestFinished(() => registry.stop());
  const key = newSigningKey();
  const data = { [signingKeyName(key.publicKey)]: key.publicKey };
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'image-signing-keys' }, data };
  const { at, digest } = registry;
  const image = parseDigestedPullspec(`${at.registry}/${at.repository}@${digest}`);
  const source = registrySource({ root: registry.dir, plainHttp: new Set([at.registry]) });
  const stage = () =>
    requireSignature(
      {
        client: answeringClient({ find: async () => configMap }),
        namespace: 'shale-system',
        signatures: source,
        root: registry.dir,
        spec: { imageSigningKeys: signingKeysVersion(data) },
        signal,
      },
      image,
    );
  return { ...registry, key, stage };
}

test('an image that somebody pushed to the repository of a pool is not staged', async () => {
  const { stage } = await poolsRepository();
  await expect(stage()).rejects.toMatchObject({ name: 'PrepareRefused' });
});

test('nor is one that the attacker signed with a key of their own', async () => {
  const { client, at, digest, stage } = await poolsRepository();
  await signImage(client, at, { digest, key: newSigningKey() }, signal);
  await expect(stage()).rejects.toMatchObject({ name: 'PrepareRefused' });
});

test("nor is one under the cluster's signature of another image", async () => {
  const { client, at, digest, key, stage } = await poolsRepository();
  const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
  const altered = { ...(JSON.parse(Buffer.from(bytes).toString()) as object), annotations: { own: 'yes' } };
  const other = await client.putManifest(
    { ...at, tag: 'other' },
    { mediaType, bytes: Buffer.from(JSON.stringify(altered)) },
    signal,
  );
  await signImage(client, at, { digest: other, key }, signal);
  const signature = await client.getManifest({ ...at, tag: `${digestTag(other)}.sig` }, signal);
  await client.putManifest({ ...at, tag: `${digestTag(digest)}.sig` }, signature, signal);
  await expect(stage()).rejects.toMatchObject({ name: 'PrepareRefused' });
});

test("one that the cluster's key signed is staged", async () => {
  const { client, at, digest, key, stage } = await poolsRepository();
  await signImage(client, at, { digest, key }, signal);
  await expect(stage()).resolves.toHaveLength(1);
});

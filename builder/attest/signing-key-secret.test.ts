import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { labels, SIGNING_KEY_SECRET, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { isSignedBy, parsePublicKey } from '../../image/signature/signing-key.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { SigningKeySecret } from './signing-key-secret.ts';

const signal = deadline(60_000);

function setUp(name = SIGNING_KEY_SECRET) {
  const cluster = new MemoryCluster();
  const client = cluster.client();
  const place = { namespace: 'shale', name };
  return {
    cluster,
    client,
    store: new SigningKeySecret(client, place),
    storeOver: (other: Partial<typeof client>) => new SigningKeySecret({ ...client, ...other }, place),
    secret: () => cluster.get(Secrets, name),
    put: (data: Record<string, string>, made?: string) =>
      cluster.put(Secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, ...(made === undefined ? {} : { labels: { [labels.madeBySwitch]: made } }) },
        data,
      }),
  };
}

const text = (base64 = '') => Buffer.from(base64, 'base64').toString('utf8');

describe('the key that signs images', () => {
  test('is created as cosign would, and read', async () => {
    const { store, secret } = setUp();
    expect(await store.read(signal)).toEqual({ kind: 'missing' });
    await store.create(signal);
    const { data = {}, metadata } = secret() ?? expect.fail('no Secret');
    expect(metadata.labels).toEqual({ [labels.madeBySwitch]: 'true' });
    const publicKey = createPublicKey(createPrivateKey(text(data['cosign.key'])));
    expect(publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
    expect(text(data['cosign.pub'])).toBe(publicKey.export({ type: 'spki', format: 'pem' }));
    expect(await store.read(signal)).toEqual({ kind: 'usable', publicKey: text(data['cosign.pub']) });
  });

  test('stays as it is where it exists', async () => {
    const { store, put, secret } = setUp();
    const before = put({ 'cosign.key': 'AAAA' });
    await store.create(signal);
    expect(secret()).toEqual(before);
  });

  test("is unusable where the admin's Secret is missing or has no key", async () => {
    const { store, put } = setUp('own');
    expect(await store.read(signal)).toEqual({ kind: 'unusable', why: 'Secret shale/own: not found' });
    put({});
    expect(await store.read(signal)).toEqual({
      kind: 'unusable',
      why: 'Secret shale/own: has no cosign.key',
    });
  });

  test.each([
    ['true', false],
    ['false', true],
    [undefined, true],
  ])('labelled %s is kept when layering ends: %s', async (made, kept) => {
    const { store, put, secret } = setUp();
    put({}, made);
    await store.remove(signal);
    expect(secret() !== undefined).toBe(kept);
  });

  test('is removed without an error where it is gone, before or in between', async () => {
    const { store, storeOver, put } = setUp();
    await store.remove(signal);
    put({}, 'true');
    await storeOver({ delete: async () => false }).remove(signal);
  });
});

describe('a key to sign with', () => {
  const base64 = (value: string) => Buffer.from(value).toString('base64');
  const pem = (encrypted: { readonly cipher?: string; readonly passphrase?: string } = {}) =>
    String(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
        ...encrypted,
      }),
    );
  const bytes = Buffer.from('payload');

  test('is read once while it stays the same, and again when it was rotated', async () => {
    const { store, put } = setUp('signing');
    put({ 'cosign.key': base64(pem()) });
    const first = (await store.find(signal)) ?? expect.fail('no key');
    expect(await store.find(signal)).toBe(first);
    put({ 'cosign.key': base64(pem()) });
    const second = (await store.find(signal)) ?? expect.fail('no key');
    expect(second.publicKey).not.toBe(first.publicKey);
    const publicKey = parsePublicKey(second.publicKey, 'key');
    expect(isSignedBy(publicKey, bytes, second.sign(bytes))).toBe(true);
    expect(isSignedBy(publicKey, bytes, first.sign(bytes))).toBe(false);
  });

  test('is decrypted again when its password changed', async () => {
    const encrypted = base64(pem({ cipher: 'aes-256-cbc', passphrase: 'right' }));
    const { store, put } = setUp('signing');
    put({ 'cosign.key': encrypted, 'cosign.password': base64('right') });
    await store.find(signal);
    put({ 'cosign.key': encrypted, 'cosign.password': base64('wrong') });
    await expect(store.find(signal)).rejects.toThrow(
      'Secret shale/signing, cosign.key: is encrypted, and the password is wrong',
    );
  });

  test.each<[string, Record<string, string> | undefined, string]>([
    ['a missing Secret', undefined, 'Secret shale/signing: not found'],
    ['a Secret without the key', { other: base64('x') }, 'has no cosign.key'],
    ['a Secret without data', {}, 'has no cosign.key'],
    ['something else', { 'cosign.key': base64('hidden-value') }, 'is not a private key'],
  ])('%s fails a build for now, which says where, and never what', async (_, data, why) => {
    const { store, put } = setUp('signing');
    if (data !== undefined) put(data);
    const error = await store.published(signal).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: 'SecretUnusable', temporary: true });
    expect(String(error)).toContain(why);
    expect(String(error)).not.toContain('hidden-value');
  });

  test('is not used before the operator has published it', async () => {
    const { store, cluster } = setUp();
    await store.create(signal);
    await expect(store.published(signal)).rejects.toMatchObject({ reason: 'SigningKeyUnpublished' });
    const { publicKey } = (await store.find(signal)) ?? expect.fail('no key');
    cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SIGNING_KEYS_CONFIG_MAP },
      data: { [signingKeyName(publicKey)]: publicKey },
    });
    expect((await store.published(signal)).publicKey).toBe(publicKey);
  });
});

test.each(['read', 'create', 'remove'] as const)('%s throws what the API server answers', async (method) => {
  const { storeOver, put } = setUp();
  put({}, 'true');
  const refuse = () => Promise.reject(new ApiError(503, 'down', { reason: 'ServiceUnavailable' }));
  const broken = method === 'read' ? { find: refuse } : { create: refuse, delete: refuse };
  await expect(storeOver(broken)[method](signal)).rejects.toMatchObject({ status: 503 });
});

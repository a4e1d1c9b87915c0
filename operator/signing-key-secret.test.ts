import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Secrets } from '../api/kubernetes.ts';
import { labels, SIGNING_KEY_SECRET } from '../api/names.ts';
import { ApiError } from '../cluster/api-client.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { signingKeyStore } from './signing-key-secret.ts';

const signal = deadline(60_000);

function setUp(name = SIGNING_KEY_SECRET) {
  const cluster = new MemoryCluster();
  const client = cluster.client();
  const place = { namespace: 'shale', name };
  return {
    cluster,
    client,
    store: signingKeyStore(client, place),
    storeOver: (other: Partial<typeof client>) => signingKeyStore({ ...client, ...other }, place),
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

test.each(['read', 'create', 'remove'] as const)('%s throws what the API server answers', async (method) => {
  const { storeOver, put } = setUp();
  put({}, 'true');
  const refuse = () => Promise.reject(new ApiError(503, 'down', { reason: 'ServiceUnavailable' }));
  const broken = method === 'read' ? { find: refuse } : { create: refuse, delete: refuse };
  await expect(storeOver(broken)[method](signal)).rejects.toMatchObject({ status: 503 });
});

import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SigningKeyError } from '../../../image/signature/signing-key.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import type { ImageSource, SourceImage } from '../ostree/image-source.ts';
import { underSignaturePolicy } from './policed-source.ts';

const image = imageOf('2');
const content: SourceImage = { labels: {}, layers: [] };
const reject = JSON.stringify({ default: [{ type: 'reject' }] });
const signedBy = (...requirements: readonly object[]) =>
  JSON.stringify({ default: requirements.map((each) => ({ type: 'sigstoreSigned', ...each })) });
const KEY = '/etc/pki/shale.pub';

/** @param signers the keys that have signed the image. */
async function hostWith(policy: string | undefined, signers: readonly string[] | undefined = []) {
  const root = await mkdtemp(path.join(tmpdir(), 'policy-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc/containers'), { recursive: true });
  await mkdir(path.join(root, 'etc/pki'));
  await writeFile(path.join(root, KEY), 'ours');
  if (policy !== undefined) await writeFile(path.join(root, 'etc/containers/policy.json'), policy);
  const opened: string[] = [];
  const source: ImageSource = {
    open: async (name) => {
      opened.push(name);
      return content;
    },
    isSignedBy: async (_name, key) => signers.includes(key),
  };
  const open = (from = source) => underSignaturePolicy(root, from).open(image, deadline(10_000));
  return { root, source, open, opened };
}
const refused = (message: RegExp) => ({ name: 'PrepareRefused', message: expect.stringMatching(message) });

describe('an image is opened', () => {
  test.each<[string, string | undefined, readonly string[]]>([
    ['on a host without a policy', undefined, []],
    [
      'where the policy accepts anything',
      JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
      [],
    ],
    ['once it is signed by the key', signedBy({ keyPath: KEY }), ['ours']],
    ['once it is signed by one of the keys', signedBy({ keyDatas: ['b3RoZXI=', 'b3Vycw=='] }), ['ours']],
    ['once it is signed by all', signedBy({ keyPath: KEY }, { keyData: 'b3RoZXI=' }), ['other', 'ours']],
  ])('%s', async (_name, policy, signers) => {
    const { open, opened } = await hostWith(policy, signers);
    expect(await open()).toBe(content);
    expect(opened).toEqual([image]);
  });
});

describe('nothing of an image is fetched', () => {
  test.each<[string, string, readonly string[], RegExp]>([
    ['where the policy rejects all', reject, ['ours'], /is rejected by the node's signature policy/],
    [
      'that nobody has signed',
      signedBy({ keyPath: KEY }),
      [],
      /has no signature by the key \/etc\/pki\/shale\.pub/,
    ],
    ['that another key has signed', signedBy({ keyPath: KEY }), ['other'], /has no signature/],
    [
      'that only one of all has signed',
      signedBy({ keyPath: KEY }, { keyData: 'b3RoZXI=' }),
      ['ours'],
      /has no signature by a key of the policy/,
    ],
    [
      'whose key is missing',
      signedBy({ keyPath: '/etc/pki/none.pub' }),
      ['ours'],
      /none\.pub does not exist/,
    ],
    ['whose key is relative', signedBy({ keyPath: 'etc/pki/shale.pub' }), ['ours'], /does not exist/],
    ['where the policy is invalid', '{', ['ours'], /is not a valid policy/],
  ])('%s', async (_name, policy, signers, message) => {
    const { open, opened } = await hostWith(policy, signers);
    await expect(open()).rejects.toMatchObject(refused(message));
    expect(opened).toEqual([]);
  });

  test('where a signature is required and the source has none', async () => {
    const { open } = await hostWith(signedBy({ keyPath: KEY }));
    await expect(open({ open: async () => content })).rejects.toMatchObject(refused(/has no signature/));
  });

  test('where the key can not be used', async () => {
    const { source, open } = await hostWith(signedBy({ keyPath: KEY }));
    const isSignedBy = () => Promise.reject(new SigningKeyError('is RSA'));
    await expect(open({ ...source, isSignedBy })).rejects.toMatchObject(refused(/shale\.pub: is RSA/));
  });

  test('where the registry is away, which is no refusal', async () => {
    const { source, open } = await hostWith(signedBy({ keyPath: KEY }));
    const isSignedBy = () => Promise.reject(new TypeError('the registry is away'));
    await expect(open({ ...source, isSignedBy })).rejects.toMatchObject({ name: 'TypeError' });
  });
});

describe('a policy that is a link', () => {
  test.each([
    ['in the host', '/etc/pki/policy.json'],
    ['beside it', '../pki/policy.json'],
  ])('is read where it lies: %s', async (_name, target) => {
    const { root, open } = await hostWith(undefined);
    await writeFile(path.join(root, 'etc/pki/policy.json'), reject);
    await symlink(target, path.join(root, 'etc/containers/policy.json'));
    await expect(open()).rejects.toMatchObject(refused(/is rejected/));
  });

  test.each([
    ['nowhere', '/etc/pki/none.json'],
    ['to itself', '/etc/containers/policy.json'],
  ])('is no absent policy where it leads %s', async (_name, target) => {
    const { root, open } = await hostWith(undefined);
    await symlink(target, path.join(root, 'etc/containers/policy.json'));
    await expect(open()).rejects.toMatchObject(refused(/is a link that leads to no file/));
  });
});

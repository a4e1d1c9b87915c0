import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { signingKeysVersion } from '../../api/image-signing.ts';
import type { ConfigMap } from '../../api/kubernetes.ts';
import { SigningKeyError } from '../../image/signature/signing-key.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import { imageOf } from '../../test/fixtures/step-context.ts';
import { requireSignature } from './require-signature.ts';

const signal = new AbortController().signal;
const image = imageOf('1');
const keys = (...names: string[]) => Object.fromEntries(names.map((name) => [`${name}.pub`, `PEM ${name}`]));

/** Which key signed which image, as the registry would show it. */
let signers: Map<string, string>;
let isUnusable: (publicKey: string) => boolean;
let questions: number;
let root: string;

beforeEach(async () => {
  [signers, questions, isUnusable] = [new Map(), 0, () => false];
  root = await mkdtemp(path.join(tmpdir(), 'shale-signature-'));
  onTestFinished(() => rm(root, { recursive: true }));
});

function require(given: {
  readonly published?: Readonly<Record<string, string>>;
  readonly named?: string | undefined;
  readonly image?: typeof image;
}): ReturnType<typeof requireSignature> {
  const { published } = given;
  const configMap: ConfigMap | undefined = published && {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'image-signing-keys' },
    data: published,
  };
  const named = 'named' in given ? given.named : signingKeysVersion(published ?? {});
  return requireSignature(
    {
      client: answeringClient({ find: async () => configMap }),
      namespace: 'shale-system',
      signatures: {
        isSignedBy: async (asked, publicKey) => {
          questions += 1;
          if (isUnusable(publicKey)) throw new SigningKeyError('is RSA');
          return signers.get(asked) === publicKey;
        },
      },
      root,
      spec: named === undefined ? {} : { imageSigningKeys: named },
      signal,
    },
    given.image ?? image,
  );
}

describe('an image', () => {
  test('that a published key signed may be staged', async () => {
    signers.set(image, 'PEM b');
    expect(await require({ published: keys('a', 'b') })).toEqual([{ image, publicKey: 'PEM b' }]);
  });

  test.each([
    ['nobody signed', undefined],
    ['another key signed', 'PEM evil'],
  ])('that %s is refused', async (_name, signer) => {
    if (signer !== undefined) signers.set(image, signer);
    await expect(require({ published: keys('a') })).rejects.toMatchObject({
      name: 'PrepareRefused',
      message: `${image}: found no signature by a key of ConfigMap image-signing-keys; expected one by a.pub`,
    });
  });

  test('is refused by a key that can’t be used, which the message names', async () => {
    signers.set(image, 'PEM a');
    isUnusable = (key) => key === 'PEM a';
    await expect(require({ published: keys('a') })).rejects.toMatchObject({
      name: 'PrepareRefused',
      message: 'ConfigMap image-signing-keys: a.pub: is RSA',
    });
  });

  test('is refused while the operator has not named any keys', async () => {
    signers.set(image, 'PEM a');
    await expect(require({ published: keys('a'), named: undefined })).rejects.toMatchObject({
      name: 'PrepareRefused',
    });
    expect(questions).toBe(0);
  });

  test.each([
    ['have an evil one among them', keys('a', 'evil')],
    ['are none', {}],
    ['are gone', undefined],
  ])('is refused when the keys %s that the operator did not name', async (_name, published) => {
    signers.set(image, 'PEM evil');
    const named = signingKeysVersion(keys('a'));
    await expect(require({ ...(published && { published }), named })).rejects.toThrow(
      'the operator named sha256:',
    );
    expect(questions).toBe(0);
  });

  test('needs no signature only where the operator says so', async () => {
    await expect(require({ published: {}, named: 'Disabled' })).resolves.toEqual([]);
    expect(questions).toBe(0);
  });
});

describe('a verified image', () => {
  test('is remembered, so that a rollback to it needs no registry', async () => {
    signers.set(image, 'PEM a');
    await require({ published: keys('a') });
    signers.clear();
    expect(await require({ published: keys('a', 'b') })).toEqual([{ image, publicKey: 'PEM a' }]);
    expect(questions).toBe(1);
  });

  test('says nothing of another digest', async () => {
    signers.set(image, 'PEM a');
    await require({ published: keys('a') });
    await expect(require({ published: keys('a'), image: imageOf('2') })).rejects.toThrow('no signature');
  });

  test('is verified again once its key was withdrawn', async () => {
    signers.set(image, 'PEM a');
    await require({ published: keys('a') });
    await expect(require({ published: keys('b') })).rejects.toThrow('no signature');
  });

  test('comes with those before it, as long as their keys are named', async () => {
    signers.set(image, 'PEM a').set(imageOf('2'), 'PEM b');
    await require({ published: keys('a') });
    const [earlier, latest] = [
      { image, publicKey: 'PEM a' },
      { image: imageOf('2'), publicKey: 'PEM b' },
    ];
    expect(await require({ published: keys('a', 'b'), image: imageOf('2') })).toEqual([earlier, latest]);
    expect(await require({ published: keys('a', 'b') })).toEqual([latest, earlier]);
    expect(await require({ published: keys('b'), image: imageOf('2') })).toEqual([latest]);
  });

  test('is forgotten after four others', async () => {
    for (const digit of ['1', '2', '3', '4', '5']) signers.set(imageOf(digit), 'PEM a');
    for (const digit of ['1', '2', '3', '4', '5'])
      await require({ published: keys('a'), image: imageOf(digit) });
    signers.clear();
    await expect(require({ published: keys('a') })).rejects.toThrow('no signature');
    await expect(require({ published: keys('a'), image: imageOf('2') })).resolves.toHaveLength(4);
  });
});

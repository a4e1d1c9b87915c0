/** skopeo and openssl verify what Shale signed, and Shale verifies what skopeo signed. */
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { newSigningKey, startRegistryWithImage } from '../../test/fixtures/registry/registry-with-image.ts';
import { digestTag } from '../artifact.ts';
import type { Reference } from '../reference.ts';
import { deleteWithReferrers, manifestAt } from '../referrers.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { isImageSignedBy, signImage } from './sign-image.ts';

const signal = deadline(300_000);

async function imageInRegistry() {
  const image = await startRegistryWithImage(signal);
  onTestFinished(() => image.stop());
  return { ...image, name: `${image.at.registry}/${image.at.repository}` };
}

/** What podman, skopeo, cri-o and bootc ask before they pull: the policy of containers-policy.json(5). */
async function pullUnderPolicy(
  { dir, name }: { readonly dir: string; readonly name: string },
  digest: Digest,
  publicKey: string,
  identity?: string,
) {
  const at = await mkdtemp(path.join(dir, 'pull-'));
  const registries = path.join(at, 'registries.d');
  await mkdir(registries);
  await writeFile(
    path.join(registries, 'test.yaml'),
    JSON.stringify({ docker: { [name]: { 'use-sigstore-attachments': true } } }),
  );
  await writeFile(path.join(at, 'key.pub'), publicKey);
  const signedIdentity = identity === undefined ? {} : { signedIdentity: { type: identity } };
  const requirement = { type: 'sigstoreSigned', keyPath: path.join(at, 'key.pub'), ...signedIdentity };
  const policy = { default: [{ type: 'reject' }], transports: { docker: { [name]: [requirement] } } };
  await writeFile(path.join(at, 'policy.json'), JSON.stringify(policy));
  return execa(
    process.env['SKOPEO'] ?? 'skopeo',
    [
      '--policy',
      path.join(at, 'policy.json'),
      '--registries.d',
      registries,
      'copy',
      '--src-tls-verify=false',
      '--remove-signatures',
      `docker://${name}@${digest}`,
      `dir:${path.join(at, 'image')}`,
    ],
    { reject: false, timeout: patience(30_000) },
  );
}

/** Debian 12 builds its skopeo, podman and buildah without sigstore; SKOPEO names another one. */
function skipWithoutSigstore(
  skip: (why: string) => void,
  pull: { readonly stderr: string; readonly code?: string | undefined },
): void {
  if (pull.code === 'ENOENT') skip('skopeo is not installed');
  if (pull.stderr.includes('sigstore disabled')) skip('this skopeo is built without sigstore');
}

describe('a node that asks for signatures', () => {
  test.for([undefined, 'matchRepository'])(
    'takes an image that is signed by its key (signedIdentity: %s)',
    async (identity, { skip }) => {
      const image = await imageInRegistry();
      const key = newSigningKey();
      await signImage(image.client, image.at, { digest: image.digest, key }, signal);
      const pull = await pullUnderPolicy(image, image.digest, key.publicKey, identity);
      skipWithoutSigstore(skip, pull);
      expect(pull).toMatchObject({ exitCode: 0, stderr: '' });
    },
  );

  test('takes none that is signed by another', async ({ skip }) => {
    const image = await imageInRegistry();
    await signImage(image.client, image.at, { digest: image.digest, key: newSigningKey() }, signal);
    const pull = await pullUnderPolicy(image, image.digest, newSigningKey().publicKey);
    skipWithoutSigstore(skip, pull);
    expect(pull.exitCode).not.toBe(0);
    expect(pull.stderr).toMatch(/Source image rejected: .*signature/);
  });

  test('takes none that is not signed, and none to which the signature of another was moved', async ({
    skip,
  }) => {
    const { client, ...image } = await imageInRegistry();
    const key = newSigningKey();
    await signImage(client, image.at, { digest: image.digest, key }, signal);
    const altered = await pushAltered(client, image.at, image.digest);
    const unsigned = await pullUnderPolicy(image, altered, key.publicKey);
    skipWithoutSigstore(skip, unsigned);
    expect(unsigned.stderr).toMatch(/signature was required, but no signature exists/);
    const signature = await client.getManifest(
      { ...image.at, tag: `${digestTag(image.digest)}.sig` },
      signal,
    );
    await client.putManifest({ ...image.at, tag: `${digestTag(altered)}.sig` }, signature, signal);
    const moved = await pullUnderPolicy(image, altered, key.publicKey);
    skipWithoutSigstore(skip, moved);
    expect(moved.exitCode).not.toBe(0);
    expect(moved.stderr).toMatch(/Source image rejected/);
    expect(
      await isImageSignedBy(client, image.at, { digest: altered, publicKey: key.publicKey }, signal),
    ).toBe(false);
  });
});

/** The same image with another manifest. */
async function pushAltered(client: RegistryClient, at: Reference, digest: Digest): Promise<Digest> {
  const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
  const manifest = {
    ...(JSON.parse(Buffer.from(bytes).toString()) as object),
    annotations: { altered: 'yes' },
  };
  return client.putManifest(
    { ...at, tag: 'altered' },
    { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) },
    signal,
  );
}

test('what skopeo signed is known as signed by its key', async ({ skip }) => {
  const { client, at, digest, dir, name } = await imageInRegistry();
  const prefix = path.join(dir, 'theirs');
  const password = path.join(dir, 'password');
  await writeFile(password, 'pass phrase');
  const skopeo = (...args: string[]) =>
    execa(process.env['SKOPEO'] ?? 'skopeo', args, { reject: false, timeout: patience(30_000) });
  const made = await skopeo(
    'generate-sigstore-key',
    '--output-prefix',
    prefix,
    '--passphrase-file',
    password,
  );
  if (made.code === 'ENOENT') skip('skopeo is not installed');
  if (made.stderr.includes('unknown')) skip('this skopeo makes no sigstore keys');
  const registries = path.join(dir, 'registries.d');
  await mkdir(registries);
  await writeFile(
    path.join(registries, 'test.yaml'),
    JSON.stringify({ docker: { [name]: { 'use-sigstore-attachments': true } } }),
  );
  const signed = await skopeo(
    ...['--insecure-policy', '--registries.d', registries, 'copy', '--preserve-digests'],
    ...['--src-tls-verify=false', '--dest-tls-verify=false'],
    ...['--sign-by-sigstore-private-key', `${prefix}.private`, '--sign-passphrase-file', password],
    ...[`docker://${name}:1`, `docker://${name}:2`],
  );
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
  const publicKey = await readFile(`${prefix}.pub`, 'utf8');
  expect(await isImageSignedBy(client, at, { digest, publicKey }, signal)).toBe(true);
  expect(await isImageSignedBy(client, at, { digest, publicKey: newSigningKey().publicKey }, signal)).toBe(
    false,
  );
});

test('openssl verifies what the registry serves, and refuses it with another key or payload', async () => {
  const { client, at, digest, dir } = await imageInRegistry();
  const key = newSigningKey();
  await signImage(client, at, { digest, key }, signal);
  const v2 = `http://${at.registry}/v2/${at.repository}`;
  const manifest = (await (
    await fetch(`${v2}/manifests/${digestTag(digest)}.sig`, {
      headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
    })
  ).json()) as { layers: { digest: string; mediaType: string; annotations: Record<string, string> }[] };
  const [layer] = manifest.layers;
  const payload = Buffer.from(await (await fetch(`${v2}/blobs/${layer?.digest}`)).arrayBuffer());
  expect(JSON.parse(payload.toString())).toEqual({
    critical: {
      identity: { 'docker-reference': `${at.registry}/${at.repository}:1` },
      image: { 'docker-manifest-digest': digest },
      type: 'cosign container image signature',
    },
    optional: null,
  });
  const signature = Buffer.from(layer?.annotations['dev.cosignproject.cosign/signature'] ?? '', 'base64');
  const files = {
    key: path.join(dir, 'key.pub'),
    signature: path.join(dir, 'sig'),
    payload: path.join(dir, 'payload'),
  };
  const openssl = async (given: { publicKey: string; payload: Buffer }) => {
    await writeFile(files.key, given.publicKey);
    await writeFile(files.signature, signature);
    await writeFile(files.payload, given.payload);
    const args = ['dgst', '-sha256', '-verify', files.key, '-signature', files.signature, files.payload];
    return (await execa('openssl', args, { reject: false })).stdout;
  };
  const { publicKey } = key;
  expect(await openssl({ publicKey, payload })).toBe('Verified OK');
  expect(await openssl({ publicKey: newSigningKey().publicKey, payload })).toBe('Verification failure');
  expect(await openssl({ publicKey, payload: Buffer.concat([payload, Buffer.from(' ')]) })).toBe(
    'Verification failure',
  );
});

test('an image that a key signed already is not signed again by it; another key adds its own', async () => {
  const { client, at, digest } = await imageInRegistry();
  const [one, other] = [newSigningKey(), newSigningKey()];
  const tag = { ...at, tag: `${digestTag(digest)}.sig` };
  expect(await signImage(client, at, { digest, key: one }, signal)).toBe(true);
  const first = await client.getManifest(tag, signal);
  expect(await signImage(client, { ...at, tag: 'other' }, { digest, key: one }, signal)).toBe(false);
  expect((await client.getManifest(tag, signal)).digest).toBe(first.digest);
  expect(await signImage(client, at, { digest, key: other }, signal)).toBe(true);
  for (const { publicKey } of [one, other]) {
    expect(await isImageSignedBy(client, at, { digest, publicKey }, signal)).toBe(true);
  }
  const { publicKey } = newSigningKey();
  expect(await isImageSignedBy(client, at, { digest, publicKey }, signal)).toBe(false);
});

test('a signature goes with its image', async () => {
  const { client, at, digest } = await imageInRegistry();
  await signImage(client, at, { digest, key: newSigningKey() }, signal);
  await deleteWithReferrers(client, at, digest, signal);
  expect(await manifestAt(client, { ...at, tag: `${digestTag(digest)}.sig` }, signal)).toBeUndefined();
});

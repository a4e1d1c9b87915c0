import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { signImage } from '../../../image/signature/sign-image.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import {
  newSigningKey,
  startRegistryWithImage,
} from '../../../test/fixtures/registry/registry-with-image.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { imagesOfPolicy, keepImagePolicy, writtenPolicyFiles } from './keep-image-policy.ts';
import type { VerifiedImage } from './policy-entries.ts';

const POLICY = '/etc/containers/policy.json';
const ATTACHMENTS = '/etc/containers/registries.d/shale-image-signatures.yaml';
const OPEN = '{ "default": [{ "type": "insecureAcceptAnything" }] }';
const images: readonly VerifiedImage[] = [{ image: imageOf('1'), publicKey: newSigningKey().publicKey }];

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-image-policy-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc/containers'), { recursive: true });
  await writeFile(path.join(root, POLICY), OPEN);
});

const keep = (wanted: readonly VerifiedImage[], owned: readonly string[] = []) =>
  keepImagePolicy({ root, owned: new Set(owned) }, wanted);
const text = (name: string) => readFile(path.join(root, name), 'utf8');

describe('the policy of a host', () => {
  test('requires signatures while the node needs them, and is then as it was, byte for byte', async () => {
    expect(await keep(images)).toEqual({
      state: { kind: 'applied', repositories: ['registry.example.com/os/worker'] },
      written: [ATTACHMENTS, POLICY],
    });
    expect(await text(POLICY)).toContain('sigstoreSigned');
    const { ino } = await stat(path.join(root, POLICY));
    expect((await keep(images)).written).toEqual([]);
    expect((await stat(path.join(root, POLICY))).ino).toBe(ino);
    expect(await imagesOfPolicy(root)).toEqual(images);

    expect(await keep([])).toEqual({ state: { kind: 'not-required' }, written: [POLICY] });
    expect(await text(POLICY)).toBe(OPEN);
    expect(await readdir(path.join(root, 'etc/containers'))).toEqual(['policy.json']);
    expect(await imagesOfPolicy(root)).toEqual([]);
  });

  test("keeps what an admin has changed since; only Shale's entry goes", async () => {
    await keep(images);
    const changed = JSON.parse(await text(POLICY)) as { transports: { docker: Record<string, unknown> } };
    changed.transports.docker['quay.io'] = [{ type: 'reject' }];
    await writeFile(path.join(root, POLICY), JSON.stringify(changed));
    expect([...(await writtenPolicyFiles(root)).keys()]).toEqual([ATTACHMENTS]);
    expect((await keep(images)).state.kind).toBe('applied');
    await keep([]);
    expect(JSON.parse(await text(POLICY))).toEqual({
      default: [{ type: 'insecureAcceptAnything' }],
      transports: { docker: { 'quay.io': [{ type: 'reject' }] } },
    });
  });

  test('of another deployment gets the entries, and counts as what is to come back', async () => {
    await keep(images);
    const other = '{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker-daemon":{}}}';
    await writeFile(path.join(root, POLICY), other);
    await rm(path.join(root, ATTACHMENTS));
    expect((await keep(await imagesOfPolicy(root))).written).toEqual([ATTACHMENTS, POLICY]);
    await keep([]);
    expect(await text(POLICY)).toBe(other);
  });

  test('is the MachineConfig’s where one contains it: what is missing is reported', async () => {
    expect((await keep(images, [POLICY])).state).toEqual({
      kind: 'incomplete',
      reason: 'OwnedByMachineConfig',
      why: `a MachineConfig contains ${POLICY}, which lacks 1 entry of type sigstoreSigned for registry.example.com/os/worker; add it, or leave the file to Shale`,
    });
    expect(await text(POLICY)).toBe(OPEN);
    await keep(images);
    expect((await keep(images, [POLICY])).state.kind).toBe('applied');
  });

  test.each([
    ['is missing', async () => rm(path.join(root, POLICY)), 'InvalidPolicy'],
    ['is invalid', async () => writeFile(path.join(root, POLICY), '{'), 'InvalidPolicy'],
    [
      'is a link',
      async () => {
        await rm(path.join(root, POLICY));
        await symlink('/usr/share/policy.json', path.join(root, POLICY));
      },
      'InvalidPolicy',
    ],
    [
      'is in a directory that is a link',
      async () => {
        await rm(path.join(root, 'etc/containers'), { recursive: true });
        await symlink(await mkdtemp(path.join(root, 'elsewhere-')), path.join(root, 'etc/containers'));
      },
      'InvalidPolicy',
    ],
  ])('that %s is reported, and staging is not stopped', async (_name, damage, reason) => {
    await damage();
    expect((await keep(images)).state).toMatchObject({ kind: 'incomplete', reason });
    expect((await keep([])).state).toEqual({ kind: 'not-required' });
  });

  test('is not written where the signatures could not be found', async () => {
    await mkdir(path.join(root, 'etc/containers/registries.d'));
    const own = 'docker: { registry.example.com/os/worker: { lookaside: "https://r.example.com" } }';
    await writeFile(path.join(root, 'etc/containers/registries.d/own.yaml'), own);
    expect((await keep(images)).state).toMatchObject({
      reason: 'KeptAsItIs',
      why: "/etc/containers/registries.d/own.yaml has an entry for registry.example.com/os/worker that doesn't set use-sigstore-attachments: set it to true",
    });
    expect(await text(POLICY)).toBe(OPEN);
  });

  test('has the repositories of mirrors, from which the images are pulled', async () => {
    const conf =
      '[[registry]]\nlocation = "registry.example.com"\n[[registry.mirror]]\nlocation = "m.io/copy"\n';
    await writeFile(path.join(root, 'etc/containers/registries.conf'), conf);
    await keep(images);
    expect(await text(ATTACHMENTS)).toContain('m.io/copy/os/worker:');
    expect(await text(POLICY)).not.toContain('m.io');
  });
});

describe('a tool that pulls by containers/image', { timeout: patience(60_000) }, () => {
  const signal = deadline(60_000);

  /** Debian 12 builds its skopeo without sigstore; SKOPEO names another one. */
  const pull = (image: string, skip: (why: string) => void) =>
    execa(
      process.env['SKOPEO'] ?? 'skopeo',
      [
        '--policy',
        path.join(root, POLICY),
        '--registries.d',
        path.join(root, path.dirname(ATTACHMENTS)),
        'copy',
        '--src-tls-verify=false',
        '--remove-signatures',
        `docker://${image}`,
        `dir:${path.join(root, 'pulled')}`,
      ],
      { reject: false, timeout: patience(30_000) },
    ).then((result) => {
      if (result.code === 'ENOENT') skip('skopeo is not installed');
      if (result.stderr.includes('sigstore disabled')) skip('this skopeo is built without sigstore');
      return result;
    });

  test('takes what the cluster signed, also before a rotation, and nothing else', async ({ skip }) => {
    const { client, at, digest, stop } = await startRegistryWithImage(signal);
    onTestFinished(stop);
    const name = `${at.registry}/${at.repository}`;
    const image = parseDigestedPullspec(`${name}@${digest}`);
    const [former, current] = [newSigningKey(), newSigningKey()];

    // Read by Debian 12's skopeo as well, whatever it can verify.
    await keep([{ image, publicKey: former.publicKey }]);
    const none = { image: imageOf('1'), publicKey: current.publicKey };
    expect((await pull(`${at.registry}/os/elsewhere:1`, () => undefined)).stderr).toMatch(
      /manifest unknown|not found|MANIFEST_UNKNOWN|NAME_UNKNOWN|name unknown/i,
    );

    expect(await pull(image, skip)).toMatchObject({ exitCode: 1 });
    await signImage(client, at, { digest, key: current }, signal);
    expect(await pull(image, skip)).toMatchObject({ exitCode: 1 });
    await signImage(client, at, { digest, key: former }, signal);
    expect(await pull(image, skip)).toMatchObject({ exitCode: 0, stderr: '' });

    const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
    const altered = {
      ...(JSON.parse(Buffer.from(bytes).toString()) as object),
      annotations: { rotated: 'yes' },
    };
    const next = { mediaType, bytes: Buffer.from(JSON.stringify(altered)) };
    const nextDigest = await client.putManifest({ ...at, tag: 'next' }, next, signal);
    const nextImage = parseDigestedPullspec(`${name}@${nextDigest}`);
    await signImage(client, { ...at, tag: 'next' }, { digest: nextDigest, key: current }, signal);
    await keep([
      none,
      { image, publicKey: former.publicKey },
      { image: nextImage, publicKey: current.publicKey },
    ]);
    for (const each of [image, nextImage]) {
      expect(await pull(each, skip)).toMatchObject({ exitCode: 0, stderr: '' });
    }

    await keep([]);
    const after = { ...altered, annotations: { signed: 'no' } };
    const unsigned = await client.putManifest(
      { ...at, tag: 'unsigned' },
      { mediaType, bytes: Buffer.from(JSON.stringify(after)) },
      signal,
    );
    expect(await pull(`${name}@${unsigned}`, skip)).toMatchObject({ exitCode: 0 });
  });
});

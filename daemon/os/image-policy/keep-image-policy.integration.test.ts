/** skopeo itself reads the policy that the daemon writes: it takes what the cluster signed, and nothing else. */
import path from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { signImage } from '../../../image/signature/sign-image.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { ATTACHMENTS, POLICY, policyHost } from '../../../test/fixtures/policy-host.ts';
import {
  newSigningKey,
  startRegistryWithImage,
} from '../../../test/fixtures/registry/registry-with-image.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { keepImagePolicy } from './keep-image-policy.ts';
import type { VerifiedImage } from './policy-entries.ts';

let root: string;
beforeEach(async () => {
  root = await policyHost();
});

const keep = (wanted: readonly VerifiedImage[]) => keepImagePolicy({ root, owned: new Set() }, wanted);

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

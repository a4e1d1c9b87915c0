/** A signed image from a registry to a deployment of ostree: the policy's verdict decides what is staged. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { signImage } from '../../../image/signature/sign-image.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import {
  newSigningKey,
  startRegistryWithImage,
} from '../../../test/fixtures/registry/registry-with-image.ts';
import { createTestNode, layerFile, noDirectoryNodes } from '../../../test/fixtures/test-node.ts';
import { registrySource } from '../ostree/registry-source.ts';
import { underSignaturePolicy } from './policed-source.ts';

const POLICY = 'etc/containers/policy.json';

async function writePolicy(root: string, requirements: readonly object[]): Promise<void> {
  await mkdir(path.dirname(path.join(root, POLICY)), { recursive: true });
  await writeFile(path.join(root, POLICY), JSON.stringify({ default: requirements }));
}

test('a signature that the builder made lets an image in, and no other does', {
  timeout: patience(60_000),
}, async () => {
  const signal = deadline(60_000);
  const { client, at, digest, dir, stop } = await startRegistryWithImage(signal);
  onTestFinished(stop);
  const root = path.join(dir, 'host');
  const image = parseDigestedPullspec(`${at.registry}/${at.repository}@${digest}`);
  const source = underSignaturePolicy(root, registrySource({ root, plainHttp: new Set([at.registry]) }));
  const key = newSigningKey();
  const keyData = Buffer.from(key.publicKey).toString('base64');
  await writePolicy(root, [{ type: 'sigstoreSigned', keyData }]);

  await expect(source.open(image, signal)).rejects.toMatchObject({
    name: 'PrepareRefused',
    message: expect.stringContaining('has no signature by a key of the policy'),
  });
  await signImage(client, at, { digest, key: newSigningKey() }, signal);
  await expect(source.open(image, signal)).rejects.toMatchObject({ name: 'PrepareRefused' });
  await signImage(client, at, { digest, key }, signal);
  expect((await source.open(image, signal)).layers.length).toBeGreaterThan(0);
});

describe.skipIf(noDirectoryNodes !== undefined)(
  'a node of plain ostree',
  { timeout: patience(120_000) },
  () => {
    test('stages no image that its policy rejects, and boots what it ran', async () => {
      await using node = await createTestNode();
      const signal = deadline(120_000);
      const image = node.addImage([layerFile('/etc/chrony.conf', 'one\n')]);
      const options = { extraKernelArguments: { remove: [], add: [] }, signal };
      await writePolicy(node.host.root, [{ type: 'reject' }]);

      await expect(node.backend.stage(image, options)).rejects.toMatchObject({
        name: 'PrepareRefused',
        message: `${image} is rejected by the node's signature policy (/etc/containers/policy.json, default)`,
      });
      const before = await node.backend.status(signal);
      expect(before.staged).toBeUndefined();

      await writePolicy(node.host.root, [{ type: 'insecureAcceptAnything' }]);
      expect((await node.backend.stage(image, options)).image).toBe(image);
    });
  },
);

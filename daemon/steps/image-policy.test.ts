import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ATTACHMENTS, OPEN, POLICY } from '../../test/fixtures/policy-host.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { imageOf, observation, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { policeImages } from './image-policy.ts';

const images = [{ image: imageOf('1'), publicKey: newSigningKey().publicKey }];

test.each<[string, readonly (readonly string[])[], string]>([
  ['bootc', [[ATTACHMENTS, POLICY]], 'applied'],
  ['rpm-ostree', [[ATTACHMENTS, POLICY]], 'applied'],
  // On such a host Shale is the one who pulls.
  ['ostree', [], 'not-required'],
] as const)('the policy of a host with %s is labelled where it was written', async (name, labelled, kind) => {
  const done: (readonly string[])[] = [];
  const { context, root } = await stepUnderTest({
    ports: { relabel: async (_root, names) => void done.push(names) },
  });
  await mkdir(path.join(root, 'etc/containers'));
  await writeFile(path.join(root, POLICY), OPEN);
  const seen = observation({ osBackend: { name: name as 'ostree', installsPackages: false } });
  for (const _ of ['written', 'there already']) await policeImages(context, seen, images);
  expect(done).toEqual(labelled);
  expect(context.memory.imagePolicy?.kind).toBe(kind);
});

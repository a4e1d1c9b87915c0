import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { parseReference } from '../../../image/reference.ts';
import { followInRoot, resolveInRoot } from '../../files/resolve-in-root.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { PrepareRefused } from '../../records/current.ts';
import type { ImageSource } from '../ostree/image-source.ts';
import { findSigner } from '../require-signature.ts';
import { evaluatePolicy, POLICY_FILE, type PolicyKey } from './signature-policy.ts';

/**
 * Lets in only what the host's signature policy allows. bootc and rpm-ostree obey it themselves; on hosts that have
 * only ostree Shale is the one who pulls. Policy and keys are read again for each image.
 *
 * @param root the running root. @param source where images come from.
 * @returns the same source, which opens no image that the policy rejects: it throws PrepareRefused.
 */
export function underSignaturePolicy(root: string, source: ImageSource): ImageSource {
  return {
    ...source,
    open: async (image, signal) => {
      await assertAllowed(root, source, image, signal);
      return source.open(image, signal);
    },
  };
}

async function assertAllowed(
  root: string,
  source: ImageSource,
  image: DigestedPullspec,
  signal: AbortSignal,
): Promise<void> {
  const decision = evaluatePolicy(await readInRoot(root, POLICY_FILE), parseReference(image));
  if (decision.kind === 'reject') throw new PrepareRefused(`${image} ${decision.why}`);
  for (const required of decision.signatures) {
    const keys = required.keys.map((key) => {
      const name = formatKey(key);
      return { name, description: `${POLICY_FILE}: ${name}`, read: () => readKey(root, key) };
    });
    if ((await findSigner(source, image, keys, signal)) !== undefined) continue;
    throw new PrepareRefused(
      `${image} has no signature by ${keys.map(({ name }) => name).join(' or ')}, as ${POLICY_FILE} requires; sign it, or change the policy`,
    );
  }
}

async function readKey(root: string, key: PolicyKey): Promise<string> {
  if (key.kind === 'text') return key.pem;
  const pem = path.isAbsolute(key.path) ? await readInRoot(root, key.path) : undefined;
  if (pem === undefined) {
    throw new PrepareRefused(`${POLICY_FILE}: ${formatKey(key)} does not exist on the node`);
  }
  return pem;
}

function formatKey(key: PolicyKey): string {
  return key.kind === 'file' ? `the key ${key.path}` : 'a key of the policy';
}

/**
 * Reads a file of the host, following links as the host does: a link that leads elsewhere from here would be another
 * policy.
 *
 * @returns undefined where nothing has this name. @throws PrepareRefused for a link that leads nowhere.
 */
async function readInRoot(root: string, name: string): Promise<string | undefined> {
  const target = await followInRoot(root, name);
  const text = target === undefined ? undefined : await readFile(target, 'utf8').catch(ignoreMissing);
  if (text !== undefined) return text;
  const place = await resolveInRoot(root, name);
  const stats = place === undefined ? undefined : await lstat(place).catch(ignoreMissing);
  if (stats === undefined) return undefined;
  throw new PrepareRefused(`${name} is a link that leads to no file`);
}

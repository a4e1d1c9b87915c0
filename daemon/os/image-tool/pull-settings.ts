import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ignoreMissing, isThere } from '../../files/tree-entry.ts';
import { parseJson } from '../os-command.ts';

const POLICY_FILE = 'etc/containers/policy.json';

/** containers-policy.json(5), as far as it says what holds for images that nothing else is said of. */
const PolicySchema = z.object({ default: z.array(z.object({ type: z.string() })) });

/**
 * Whether a host lets in nothing that it can't check. Both image tools obey the policy anyway; told that signatures are
 * demanded, they also refuse to go on when the policy has been opened meanwhile.
 *
 * @param root the running root. @throws Error where the policy can't be read.
 */
export async function demandsSignatures(root: string): Promise<boolean> {
  const text = await readFile(path.join(root, POLICY_FILE), 'utf8').catch(ignoreMissing);
  return text !== undefined && policyDemandsSignatures(text);
}

/** @param text of a policy.json. @throws Error where it can't be read. */
export function policyDemandsSignatures(text: string): boolean {
  const policy = parseJson(PolicySchema, text, `/${POLICY_FILE}: expected {"default": [{"type": "…"}]}`);
  return policy.default.every(({ type }) => type !== 'insecureAcceptAnything');
}

/** Where ostree's container code looks for credentials, first first (ostree-rs-ext, globals::get_global_authfile). */
const OSTREE_AUTH_FILES = ['/run/ostree/auth.json', '/etc/ostree/auth.json', '/usr/lib/ostree/auth.json'];
const RUNTIME_AUTH_FILE = '/run/ostree/auth.json';

/**
 * Lets bootc and rpm-ostree pull with the node's pull secret, unless the admin gave them one of their own. A link, so
 * that a secret that changes is the new one at once, and under /run, so that no deployment takes it along; as MCO does.
 *
 * @param root the running root. @param secretFile where the node has its secret, absolute within the root.
 */
export async function sharePullSecret(root: string, secretFile: string): Promise<void> {
  for (const file of OSTREE_AUTH_FILES) if (await isThere(path.join(root, file))) return;
  if (!(await isThere(path.join(root, secretFile)))) return;
  const place = path.join(root, RUNTIME_AUTH_FILE);
  await mkdir(path.dirname(place), { recursive: true, mode: 0o755 });
  // One that leads nowhere was made while the secret was elsewhere.
  await rm(place, { force: true });
  await symlink(`../..${secretFile}`, place);
}

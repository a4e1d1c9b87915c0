import { access, mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';

/** Where ostree's container code looks for credentials, first first (ostree-rs-ext, globals::get_global_authfile). */
const OSTREE_AUTH_FILES = ['/run/ostree/auth.json', '/etc/ostree/auth.json', '/usr/lib/ostree/auth.json'];
const RUNTIME_AUTH_FILE = '/run/ostree/auth.json';

/**
 * Lets bootc and rpm-ostree pull with the node's pull secret, unless the admin gave them one of their own. A link, so that a
 * secret that changes is the new one at once, and under /run, so that no deployment takes it along; as MCO does.
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

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

import { access, mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';

/** Where the kubelet keeps the node's own pull secret, relative to the root (OpenShift and kubelet's default). */
export const KUBELET_AUTH_FILE = '/var/lib/kubelet/config.json';

/** Where ostree's container code looks for credentials, first first (ostree-rs-ext, globals::get_global_authfile). */
const OSTREE_AUTH_FILES = ['/run/ostree/auth.json', '/etc/ostree/auth.json', '/usr/lib/ostree/auth.json'];
const RUNTIME_AUTH_FILE = '/run/ostree/auth.json';

/**
 * Lets bootc and rpm-ostree pull with the kubelet's secret, unless the admin gave them one of their own. A link, so that a
 * secret that changes is the new one at once, and under /run, so that no deployment takes it along; as MCO does.
 *
 * @param root the running root.
 */
export async function sharePullSecret(root: string): Promise<void> {
  for (const file of OSTREE_AUTH_FILES) if (await isThere(path.join(root, file))) return;
  if (!(await isThere(path.join(root, KUBELET_AUTH_FILE)))) return;
  const place = path.join(root, RUNTIME_AUTH_FILE);
  await mkdir(path.dirname(place), { recursive: true, mode: 0o755 });
  // One that leads nowhere was made while the kubelet had its secret elsewhere.
  await rm(place, { force: true });
  await symlink(`../..${KUBELET_AUTH_FILE}`, place);
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

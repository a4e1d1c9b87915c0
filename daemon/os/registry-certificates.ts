import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from '../tree/tree-entry.ts';

/** Podman's and CRI-O's directory, then Docker's (containers-certs.d(5)). */
const DIRECTORIES = ['etc/containers/certs.d', 'etc/docker/certs.d'];

/**
 * The certificate authorities that the node trusts for one registry beyond the system's: every `*.crt` of its
 * directories. Read anew for each pull, so that a CA that was just delivered counts.
 *
 * @param root the running root. @param registry `host` or `host:port`, as in an image's name.
 * @returns PEM texts, in the order of directories and file names; none when the registry has no directory.
 * @throws TypeError when the registry isn't a plain host.
 */
export async function registryCertificates(root: string, registry: string): Promise<readonly string[]> {
  if (!/^[A-Za-z0-9.:[\]-]+$/.test(registry) || registry.startsWith('.')) {
    throw new TypeError(`${JSON.stringify(registry)}: expected a registry's host and perhaps port`);
  }
  const certificates: string[] = [];
  for (const directory of DIRECTORIES) {
    const place = path.join(root, directory, registry);
    const names = ((await readdir(place).catch(ignoreMissing)) ?? []).filter((name) => name.endsWith('.crt'));
    for (const name of names.sort()) certificates.push(await readFile(path.join(place, name), 'utf8'));
  }
  return certificates;
}

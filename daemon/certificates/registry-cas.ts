import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { nodePaths } from '../../api/names.ts';
import { registryCAsDigest, registryOfKey } from '../../api/registry-cas.ts';
import { resolveInRoot } from '../live/resolve-in-root.ts';
import { readRecord, writeRecord } from '../records/durable-json.ts';

/** Where container runtimes look for the CAs of a registry (containers-certs.d(5); Docker's certs.d). */
const DIRECTORIES = ['/etc/containers/certs.d', '/etc/docker/certs.d'];
/** The name under which Shale writes: an admin's own files beside it are left alone. */
const FILE = 'shale-ca.crt';

const Applied = z.object({ version: z.literal(1), digest: z.string(), registries: z.array(z.string()) });

/** The ConfigMap is not what the operator named, or holds what no directory can be called after. */
export class CertificatesRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificatesRefused';
  }
}

/** @returns the digest of the CAs that the node has; undefined when Shale has written none. */
export async function appliedRegistryCAs(root: string): Promise<string | undefined> {
  return (await readRecord(recordIn(root), Applied))?.digest;
}

/**
 * Brings registry CAs to the disk: each file whole or not at all, registries that are no longer named lose theirs. A new
 * CA is there before an old one goes, so a pull in between succeeds.
 *
 * @param root the running root.
 * @param data the ConfigMap's data.
 * @param digest what the operator says the data should be.
 * @throws CertificatesRefused before anything is written.
 */
export async function applyRegistryCAs(
  root: string,
  data: Readonly<Record<string, string>>,
  digest: string,
): Promise<void> {
  const bundles = check(data, digest);
  const before = await readRecord(recordIn(root), Applied);
  const registries = [...bundles.keys()].sort();
  const all = [...new Set([...registries, ...(before?.registries ?? [])])].sort();
  // Both the old and the new are on record while files change: after a crash none is forgotten.
  await writeRecord(recordIn(root), { version: 1, digest: '', registries: all });
  for (const [registry, pem] of bundles) {
    for (const directory of DIRECTORIES)
      await writeWhole(await placeFor(root, `${directory}/${registry}`), pem);
  }
  for (const registry of all.filter((name) => !bundles.has(name))) {
    for (const directory of DIRECTORIES) {
      const file = await resolveInRoot(root, `${directory}/${registry}/${FILE}`);
      if (file !== undefined) await removeFile(file);
    }
  }
  await writeRecord(recordIn(root), { version: 1, digest, registries });
}

function check(data: Readonly<Record<string, string>>, digest: string): ReadonlyMap<string, string> {
  const found = registryCAsDigest(data);
  if (found !== digest) {
    throw new CertificatesRefused(
      `the registry CAs are ${found}, the operator named ${digest}; they may have changed since`,
    );
  }
  return new Map(
    Object.entries(data).map(([key, pem]) => {
      const registry = registryOfKey(key);
      if (registry === undefined) {
        throw new CertificatesRefused(
          `registry CAs: key ${JSON.stringify(key)} is no registry; expected host or host..port`,
        );
      }
      return [registry, pem];
    }),
  );
}

/** Makes a directory of the root, step by step, so that no link on the way leads out of it. */
async function placeFor(root: string, directory: string): Promise<string> {
  let name = '';
  for (const part of directory.split('/').filter((step) => step !== '')) {
    name += `/${part}`;
    const place = await resolveInRoot(root, name);
    if (place === undefined) throw new Error(`${name}: a parent is no directory`);
    await mkdir(place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  const file = await resolveInRoot(root, `${directory}/${FILE}`);
  if (file === undefined) throw new Error(`${directory}: is no directory`);
  return file;
}

async function writeWhole(file: string, text: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return;
  const temporary = `${file}.new`;
  await writeFile(temporary, text, { mode: 0o644, flush: true });
  await rename(temporary, file);
}

/** The registry's directory goes with its last file. */
async function removeFile(file: string): Promise<void> {
  await rm(file, { force: true });
  const directory = path.dirname(file);
  const left = await readdir(directory).catch(() => undefined);
  if (left?.length === 0) await rm(directory, { recursive: true });
}

function recordIn(root: string): string {
  return path.join(root, nodePaths.state, 'registry-cas.json');
}

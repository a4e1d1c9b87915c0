import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import type { CertificateName } from '../../../api/node-certificates.ts';
import { type ContentDigest, contentDigest, contentDigestAt } from '../../records/managed-paths.ts';
import { resolveInRoot } from '../../tree/resolve-in-root.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { takeStep } from '../../tree/write-step.ts';
import type { CertificateFile, CertificateFiles } from './certificate-files.ts';
import { type Delivery, readDeliveries, writeDelivery } from './delivered.ts';

/** Whether files that are named no more go. A registry's do; the kubelet could not start without those of its own. */
const REMOVED: Readonly<Record<CertificateName, boolean>> = {
  registryCAs: true,
  kubeletCA: false,
  pullSecret: false,
};

/**
 * Brings files to the disk, each whole or not at all. What is new is there before what is old goes, so a pull in between
 * succeeds. Killed at any point and called again, it ends in the same state.
 *
 * @param root the running root. @param version of the files, as the operator names it.
 * @returns the delivery; the paths that changed are untold until `settleDelivery`.
 * @throws the file system's errors; what was there before a failed file is still there.
 */
export async function deliver(
  root: string,
  name: CertificateName,
  { version, files }: { readonly version: string; readonly files: CertificateFiles },
): Promise<Delivery> {
  const before = (await readDeliveries(root))[name] ?? { version: '', files: {}, untold: [] };
  const digests = new Map([...files].sort(byName).map(([file, wanted]) => [file, digestOf(wanted)]));
  const untold = new Set(before.untold);
  for (const [file, digest] of digests) {
    if ((await contentDigestAt(root, file)) !== digest) untold.add(file);
  }
  const gone = Object.keys(before.files).filter((file) => !digests.has(file));
  if (REMOVED[name]) for (const file of gone) untold.add(file);
  const delivery = { version, files: Object.fromEntries(digests), untold: [...untold].sort() };
  if (untold.size === 0) {
    await writeDelivery(root, name, delivery);
    return delivery;
  }
  // Both the old and the new are on record while files change: after a crash none is forgotten.
  await writeDelivery(root, name, {
    ...delivery,
    version: '',
    files: { ...before.files, ...delivery.files },
  });
  for (const [file, wanted] of files) await write(root, file, wanted, digests.get(file));
  if (REMOVED[name]) for (const file of gone) await remove(root, file);
  await writeDelivery(root, name, delivery);
  return delivery;
}

/** Services know of what was delivered. */
export async function settleDelivery(root: string, name: CertificateName, delivery: Delivery): Promise<void> {
  if (delivery.untold.length > 0) await writeDelivery(root, name, { ...delivery, untold: [] });
}

async function write(
  root: string,
  name: string,
  { contents, mode }: CertificateFile,
  digest: ContentDigest | undefined,
): Promise<void> {
  if ((await contentDigestAt(root, name)) === digest) return;
  const place = await placeFor(root, name);
  await takeStep({ kind: 'file', name, place, contents, mode, uid: 0, gid: 0 });
}

/** Makes a file's directory, step by step, so that no link on the way leads out of the root. */
async function placeFor(root: string, name: string): Promise<string> {
  let directory = '';
  for (const part of path.posix
    .dirname(name)
    .split('/')
    .filter((step) => step !== '')) {
    directory += `/${part}`;
    const place = await resolveInRoot(root, directory);
    if (place === undefined) throw new Error(`${directory}: a parent is no directory`);
    await mkdir(place, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  const file = await resolveInRoot(root, name);
  if (file === undefined) throw new Error(`${directory}: is no directory`);
  return file;
}

/** The directory goes with its last file. */
async function remove(root: string, name: string): Promise<void> {
  const place = await resolveInRoot(root, name);
  if (place === undefined) return;
  await rm(place, { force: true });
  const left = await readdir(path.dirname(place)).catch(ignoreMissing);
  if (left?.length === 0) await rmdir(path.dirname(place));
}

function digestOf({ contents, mode }: CertificateFile): ContentDigest {
  const sha256 = createHash('sha256').update(contents).digest('hex');
  return contentDigest({ kind: 'file', mode, uid: 0, gid: 0, sha256 });
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  type CertificateName,
  type CertificateVersions,
  certificateNames,
} from '../../../api/node-certificates.ts';
import { by } from '../../../api/order.ts';
import { type PutFile, putFile, removeFileOfOwnDirectory } from '../../files/put-file.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { type ContentDigest, contentDigest } from '../../files/tree-entry.ts';
import { stateRecord } from '../../records/durable-json.ts';
import type { CertificateFiles } from './certificate-files.ts';

/**
 * Whether files that are no longer named are removed. Those of registries are; the kubelet could not start without its
 * own.
 */
const REMOVED: Readonly<Record<CertificateName, boolean>> = {
  registryCAs: true,
  kubeletCA: false,
  pullSecret: false,
};

/**
 * Brings files to the disk, each whole or not at all. What is new is there before what is old goes, so a pull in
 * between succeeds. Killed at any point and called again, it ends in the same state.
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
  const digests = new Map(
    [...files].sort(by(([name]) => name)).map(([file, content]) => [file, fileDigest(content)]),
  );
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
  for (const [file, content] of files) {
    if ((await contentDigestAt(root, file)) !== digests.get(file)) await putFile(root, file, content);
  }
  if (REMOVED[name]) for (const file of gone) await removeFileOfOwnDirectory(root, file);
  await writeDelivery(root, name, delivery);
  return delivery;
}

/** Services know of what was delivered. */
export async function settleDelivery(root: string, name: CertificateName, delivery: Delivery): Promise<void> {
  if (delivery.untold.length > 0) await writeDelivery(root, name, { ...delivery, untold: [] });
}

function fileDigest({ contents, mode }: PutFile): ContentDigest {
  const sha256 = createHash('sha256').update(contents).digest('hex');
  return contentDigest({ kind: 'file', mode, uid: 0, gid: 0, sha256 });
}

const Delivery = z.object({
  version: z.string(),
  /** Each path with the digest of the content that Shale wrote. */
  files: z.record(z.string().startsWith('/'), z.string()),
  /** Paths whose services have not been notified yet. */
  untold: z.array(z.string()),
});
/** What the node was given under one name. */
export type Delivery = z.infer<typeof Delivery>;

const Delivered = z.object({
  version: z.literal(1),
  given: z.object({
    registryCAs: Delivery.exactOptional(),
    kubeletCA: Delivery.exactOptional(),
    pullSecret: Delivery.exactOptional(),
  }),
});

const delivered = stateRecord('certificates.json', Delivered);

/** Certificates and the pull secret that the node was given. */
export type Deliveries = Readonly<Partial<Record<CertificateName, Delivery>>>;

/** @param root the running root. @throws RecordError */
export async function readDeliveries(root: string): Promise<Deliveries> {
  return (await delivered.read(root))?.given ?? {};
}

/** Writes one of them, whole or not at all, and durably. */
async function writeDelivery(root: string, name: CertificateName, delivery: Delivery): Promise<void> {
  const given = { ...(await readDeliveries(root)), [name]: delivery };
  await delivered.write(root, { version: 1, given });
}

/**
 * @returns the versions that the node has: those whose files are as they were put there and whose services know. One
 *   that an image, a config or a hand has replaced since is not one.
 */
export async function certificatesOf(root: string): Promise<CertificateVersions> {
  const given = await readDeliveries(root);
  const versions: CertificateVersions = {};
  for (const name of certificateNames) {
    const delivery = given[name];
    if (delivery === undefined || delivery.untold.length > 0) continue;
    if (await isThere(root, delivery)) versions[name] = delivery.version;
  }
  return versions;
}

async function isThere(root: string, { files }: Delivery): Promise<boolean> {
  for (const [name, digest] of Object.entries(files)) {
    if ((await contentDigestAt(root, name)) !== digest) return false;
  }
  return true;
}

/** @returns every delivered path under /etc, where ostree takes it for an admin's edit. */
export function deliveredInEtc(deliveries: Deliveries): ReadonlyMap<string, ContentDigest> {
  const files = certificateNames.flatMap((name) => Object.entries(deliveries[name]?.files ?? {}));
  return new Map(files.filter(([name]) => name.startsWith('/etc/')));
}

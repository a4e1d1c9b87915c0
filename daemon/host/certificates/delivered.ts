import path from 'node:path';
import { z } from 'zod';
import { nodePaths } from '../../../api/names.ts';
import {
  type CertificateName,
  type CertificateVersions,
  certificateNames,
} from '../../../api/node-certificates.ts';
import { readRecord, writeRecord } from '../../records/durable-json.ts';
import { type ContentDigest, contentDigestAt } from '../../records/managed-paths.ts';

const Delivery = z.object({
  version: z.string(),
  /** Each path, and the content digest of what Shale put there. */
  files: z.record(z.string().startsWith('/'), z.string()),
  /** Paths of which services have not been told yet. */
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

/** Certificates and the pull secret that the node was given. */
export type Deliveries = Readonly<Partial<Record<CertificateName, Delivery>>>;

/** @param root the running root. @throws RecordError */
export async function readDeliveries(root: string): Promise<Deliveries> {
  return (await readRecord(recordIn(root), Delivered))?.given ?? {};
}

/** Writes one of them, whole or not at all, and durably. */
export async function writeDelivery(root: string, name: CertificateName, delivery: Delivery): Promise<void> {
  const given = { ...(await readDeliveries(root)), [name]: delivery };
  await writeRecord(recordIn(root), { version: 1, given });
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

function recordIn(root: string): string {
  return path.join(root, nodePaths.state, 'certificates.json');
}

import type { Digest } from '../../api/references.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { fileText } from './slots.ts';
import { ARCHITECTURE } from './walk-cluster.ts';

/** The stock image of two versions; the second has other defaults in /etc and /usr. */
export type Version = '1' | '2';

const OCI = 'application/vnd.oci.image';

/** What the second version has of its own. */
const NEWER: Readonly<Record<string, string>> = {
  '/etc/chrony.conf': 'pool two.ntp.org iburst\n',
  '/etc/two.conf': 'two\n',
  '/usr/share/two': 'two\n',
};
const OS_RELEASE = '/usr/lib/os-release';

/** @returns what a tree of a version has that one of version 1 has not, as a snapshot. */
export function ownOf(version: Version): Readonly<Record<string, string>> {
  if (version === '1') return {};
  const osRelease = textOf(stockImage('2'), OS_RELEASE);
  return Object.fromEntries(
    Object.entries({ ...NEWER, [OS_RELEASE]: osRelease }).map(([path, text]) => [path, fileText(text)]),
  );
}

function textOf(entries: readonly LayerEntry[], path: string): string {
  const entry = entries.find((candidate) => candidate.path === path);
  if (entry?.type !== 'file') throw new Error(`the stock image has no ${path}`);
  return Buffer.from(entry.content).toString();
}

/** @param name `host:port/repository:tag` @returns the digest of the image, under that tag and its own. */
export async function pushStockImage(
  client: RegistryClient,
  name: string,
  version: Version,
  signal: AbortSignal,
): Promise<Digest> {
  const at = parseReference(name);
  const newer = Object.entries(NEWER).map(
    ([path, text]): LayerEntry => ({
      type: 'file',
      path,
      mode: 0o644,
      uid: 0,
      gid: 0,
      content: Buffer.from(text),
    }),
  );
  const layers = await Promise.all(
    [stockImage(version), ...(version === '1' ? [] : [newer])].map((entries) => writeLayer(entries)),
  );
  const config = Buffer.from(
    JSON.stringify({
      architecture: ARCHITECTURE,
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    }),
  );
  for (const bytes of [config, ...layers.map((layer) => layer.bytes)])
    await client.putBlob(at, bytes, signal);
  const manifest = {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: { mediaType: `${OCI}.config.v1+json`, digest: digestOf(config), size: config.length },
    layers: layers.map(({ digest, bytes }) => ({
      mediaType: `${OCI}.layer.v1.tar+gzip`,
      digest,
      size: bytes.length,
    })),
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return client.putManifest(at, { mediaType: manifest.mediaType, bytes }, signal);
}

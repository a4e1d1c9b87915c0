import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { archiveEntries, END_OF_ARCHIVE } from '../../image/layer/write-layer.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';

const LAYER_BYTES = 64_000_000;
const FILES_IN_A_DIRECTORY = 50;

/**
 * Pushes a base image as distributions have it: many files in many directories, of bytes that compress to half.
 *
 * @param name `host:port/repository:tag` @param size `bytes` of its layers, compressed.
 * @returns its size in bytes.
 */
export async function pushFilledBase(
  client: RegistryClient,
  name: string,
  size: { readonly bytes: number; readonly files: number },
  signal: AbortSignal,
): Promise<number> {
  const at = parseReference(name);
  const count = Math.ceil(size.bytes / LAYER_BYTES);
  const files = Math.ceil(size.files / count);
  const diffIds: string[] = [];
  const layers: { readonly mediaType: string; readonly digest: string; readonly size: number }[] = [];
  for (let layer = 0; layer < count; layer += 1) {
    const entries = filledEntries(layer, files, Math.floor(size.bytes / size.files));
    const archive = Buffer.concat([await archiveEntries(entries, 0), END_OF_ARCHIVE]);
    const blob = gzipSync(archive, { level: 1 });
    await client.putBlob(at, blob, signal);
    diffIds.push(digestOf(archive));
    layers.push({
      mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
      digest: digestOf(blob),
      size: blob.length,
    });
  }
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const rootfs = { type: 'layers', diff_ids: diffIds };
  const config = Buffer.from(JSON.stringify({ architecture, os: 'linux', config: {}, rootfs }));
  await client.putBlob(at, config, signal);
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: digestOf(config),
      size: config.length,
    },
    layers,
  };
  await client.putManifest(at, { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) }, signal);
  return layers.reduce((sum, { size: each }) => sum + each, 0);
}

/** @param bytes of a file, compressed: half of its hexadecimal digits. */
function filledEntries(layer: number, files: number, bytes: number): readonly LayerEntry[] {
  const owner = { uid: 0, gid: 0 };
  return Array.from({ length: files }, (_, index): readonly LayerEntry[] => {
    const directory = `/usr/lib/part-${layer}/${Math.floor(index / FILES_IN_A_DIRECTORY)}`;
    const content = Buffer.from(randomBytes(bytes).toString('hex'));
    return [
      ...(index % FILES_IN_A_DIRECTORY === 0
        ? [{ type: 'directory', path: directory, mode: 0o755, ...owner } as const]
        : []),
      { type: 'file', path: `${directory}/file-${index}`, mode: 0o644, ...owner, content },
    ];
  }).flat();
}

import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar';

/** Writes an image as other programs read it (OCI image-spec, image-layout.md). @param layers uncompressed. */
export function writeLayout(place: string, tag: string, layers: readonly Buffer[]): void {
  mkdirSync(path.join(place, 'blobs/sha256'), { recursive: true });
  const blob = (mediaType: string, bytes: Buffer) => {
    const hex = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(path.join(place, 'blobs/sha256', hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (mediaType: string, value: unknown) => blob(mediaType, Buffer.from(JSON.stringify(value)));
  const descriptors = layers.map((bytes) => blob(LAYER, bytes));
  const config = json(CONFIG, {
    architecture: 'amd64',
    os: 'linux',
    config: {},
    rootfs: { type: 'layers', diff_ids: descriptors.map(({ digest }) => digest) },
  });
  const manifest = json(MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, config, layers: descriptors });
  const annotations = { 'org.opencontainers.image.ref.name': tag };
  writeFileSync(path.join(place, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(
    path.join(place, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  );
}

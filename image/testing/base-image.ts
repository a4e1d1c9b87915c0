import { type Digest, digestOf } from '../digest.ts';
import { writeLayer } from '../layer/write-layer.ts';
import { parseReference } from '../reference.ts';
import type { RegistryClient } from '../registry/registry-client.ts';

const mediaType = 'application/vnd.oci.image.manifest.v1+json';

/**
 * Pushes a small base image for tests: one layer, one label, fields of its own that have to survive.
 *
 * @param name `host:port/repository:tag`
 * @param architecture in Go's words. @param id of os-release; another id is another image.
 * @returns its digest.
 */
export async function pushBaseImage(
  client: RegistryClient,
  name: string,
  signal: AbortSignal,
  architecture = 'amd64',
  id = 'stock',
): Promise<Digest> {
  const at = parseReference(name);
  const content = Buffer.from(`ID=${id}`);
  const layer = await writeLayer([
    { type: 'file', path: '/usr/lib/os-release', mode: 0o644, uid: 0, gid: 0, content },
  ]);
  const config = Buffer.from(
    JSON.stringify({
      architecture,
      os: 'linux',
      author: 'somebody',
      config: { Labels: { kept: 'yes' } },
      rootfs: { type: 'layers', diff_ids: [layer.diffId] },
    }),
  );
  await client.putBlob(at, layer.bytes, signal);
  await client.putBlob(at, config, signal);
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: digestOf(config),
      size: config.length,
    },
    layers: [
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        digest: layer.digest,
        size: layer.bytes.length,
      },
    ],
  };
  return client.putManifest(at, { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) }, signal);
}

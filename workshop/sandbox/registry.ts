import { createReadStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DIE_WITH_PARENT } from '@shale/apiserver/control-plane/child-process.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { startDockerRegistry } from './docker-registry.ts';
import type { RootfsArchive } from './systemd-node/rootfs-archive.ts';

/** The sandbox's registry: Debian's docker-registry on loopback, with a certificate of its own authority. */
export interface SandboxRegistry {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** Whom to trust for it. */
  readonly caPem: string;
  readonly client: RegistryClient;
  stop(): Promise<void>;
}

/**
 * @param dir where it keeps its configuration, certificate and blobs; created if it doesn't exist.
 * @throws Error when docker-registry is not installed or not ready in time.
 */
export async function startRegistry(dir: string): Promise<SandboxRegistry> {
  await mkdir(dir, { recursive: true });
  const authority = createAuthority('shale-sandbox-registry', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const tls = { certificate: path.join(dir, 'tls.crt'), key: path.join(dir, 'tls.key') };
  await writeFile(tls.certificate, certPem);
  await writeFile(tls.key, keyPem, { mode: 0o600 });
  const registry = await startDockerRegistry({ dir, tls, launcher: DIE_WITH_PARENT });
  const { caPem } = authority;
  return {
    host: registry.host,
    caPem,
    client: createRegistryClient({ caFor: (name) => (name === registry.host ? caPem : undefined) }),
    stop: registry.stop,
  };
}

export interface ImageContent {
  readonly entries: readonly LayerEntry[];
  /** The lowest layer. */
  readonly onto?: RootfsArchive;
  /** A layer of its own between that and the entries. */
  readonly between?: readonly LayerEntry[];
  readonly labels?: Readonly<Record<string, string>>;
  /** As bootc takes it: it refuses an image without its label, and one whose history doesn't name each layer. */
  readonly bootable?: boolean;
}

/**
 * Pushes an image.
 *
 * @param repository in the registry, without its host.
 * @returns the image by digest. @throws RegistryError.
 */
export async function pushImage(
  { host, client }: Pick<SandboxRegistry, 'host' | 'client'>,
  repository: string,
  { entries, onto, between, labels: own = {}, bootable = false }: ImageContent,
  signal: AbortSignal,
): Promise<DigestedPullspec> {
  const at = parseReference(`${host}/${repository}`);
  const layers = await Promise.all(
    [...(between === undefined ? [] : [between]), entries].map((each) => writeLayer(each)),
  );
  const diffIds = [...(onto === undefined ? [] : [onto.digest]), ...layers.map(({ diffId }) => diffId)];
  const labels = { ...(bootable ? { 'containers.bootc': '1' } : {}), ...own };
  // Without a time of creation the same content has the same digest each time (OCI image-spec, config.md: optional).
  const config = json({
    architecture: goArchitecture(process.arch),
    os: 'linux',
    config: Object.keys(labels).length === 0 ? {} : { Labels: labels },
    rootfs: { type: 'layers', diff_ids: diffIds },
    ...(bootable ? { history: diffIds.map(() => ({ created_by: 'sandbox' })) } : {}),
  });
  if (onto !== undefined && !(await client.hasBlob(at, onto.digest, signal))) {
    await client.putBlobStream(at, onto, createReadStream(onto.file), signal);
  }
  for (const { bytes } of layers) await client.putBlob(at, bytes, signal);
  await client.putBlob(at, config, signal);
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const bytes = json({
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: digestOf(config),
      size: config.length,
    },
    layers: [
      ...(onto === undefined ? [] : [{ mediaType: LAYER, digest: onto.digest, size: onto.size }]),
      ...layers.map(({ digest, bytes }) => ({ mediaType: `${LAYER}+gzip`, digest, size: bytes.length })),
    ],
  });
  const digest = await client.putManifest({ ...at, digest: digestOf(bytes) }, { mediaType, bytes }, signal);
  return parseDigestedPullspec(`${host}/${repository}@${digest}`);
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

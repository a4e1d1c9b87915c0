import { by } from '../api/order.ts';
import type { Digest } from '../api/references.ts';
import { sbomOf } from '../container/sbom.ts';
import { type Descriptor, descriptorOf, digestOf } from '../image/digest.ts';
import { type Instance, imageIndex } from '../image/image-index.ts';
import type { LayerEntry } from '../image/layer/entry.ts';
import { archiveEntries, END_OF_ARCHIVE, type Layer, writeLayer } from '../image/layer/write-layer.ts';
import { formatManifest } from '../image/manifest.ts';
import { OCI_CONFIG, OCI_LAYER, OCI_MANIFEST } from '../image/registry/manifest-type.ts';
import type { ImageFiles } from './base-tree.ts';
import { compileCache, NODE_IN_IMAGE } from './compile-cache.ts';
import { fileEntry } from './shale-files.ts';
import { systemFiles, systemPackages } from './system-files.ts';

/** Blobs and manifests by digest: what is written into an archive and pushed to a registry. */
export interface Content {
  readonly blobs: Map<Digest, Uint8Array>;
  /** In the order in which they have to be pushed. */
  readonly manifests: (Descriptor & { readonly bytes: Uint8Array })[];
}

/** Shale's image for one platform. */
export interface PlatformImage {
  readonly architecture: string;
  readonly instance: Instance;
  readonly config: Uint8Array;
  readonly manifest: Uint8Array;
  readonly layers: readonly Layer[];
  /** The bill of materials, as it lies in the image. */
  readonly sbom: string;
  /** Why the image's processes have to compile their programs at each start. */
  readonly withoutCache?: string;
}

interface Parts {
  readonly architecture: string;
  readonly version: string;
  readonly revision: string;
  readonly base: ImageFiles;
  /** Node's program for the platform. */
  readonly node: Buffer;
  /** What every platform has in /shale. */
  readonly shale: readonly LayerEntry[];
  /** Text of the installed packages' node_modules/.package-lock.json. */
  readonly installed: string;
}

/** Equal images are one, whenever they are made. */
export const CREATED = '1970-01-01T00:00:00Z';
const SBOM = '/usr/share/sbom/shale.spdx.json';
const ENTRYPOINT = [NODE_IN_IMAGE, '--disable-warning=ExperimentalWarning', '/shale/cli/dist/main.mjs'];
const ACCOUNTS = {
  '/etc/nsswitch.conf': 'hosts: files dns\n',
  '/etc/passwd': 'root:x:0:0::/:/sbin/nologin\nshale:x:65532:65532::/:/sbin/nologin\n',
  '/etc/group': 'root:x:0:\nshale:x:65532:\n',
};

/**
 * Makes Shale's image for one platform without running anything of that platform: what the Containerfile makes, in two
 * layers, of which the first changes with Node and the base only.
 *
 * @throws Error for what the base lacks.
 */
export async function platformImage(parts: Parts, signal: AbortSignal): Promise<PlatformImage> {
  const { architecture, version, revision, base, node } = parts;
  const system = systemFiles(base, architecture, node);
  const sbom = sbomOf(version, parts.installed, systemPackages(base, system));
  const below: LayerEntry[] = [
    ...system.map(({ name, mode, content }) => fileEntry(name, content, mode)),
    ...Object.entries(ACCOUNTS).map(([name, text]) => fileEntry(name, text)),
    { type: 'directory', path: '/tmp', mode: 0o1777, uid: 0, gid: 0 },
    fileEntry(NODE_IN_IMAGE, node, 0o755),
  ];
  const own = [...parts.shale, fileEntry(SBOM, `${sbom}\n`)];
  const cache = await compileCache([...below, ...own], signal);
  const layers = [
    await writeLayer(below),
    await writeLayer('files' in cache ? [...own, ...cache.files] : own),
  ];
  const config = Buffer.from(
    JSON.stringify({
      created: CREATED,
      architecture,
      os: 'linux',
      config: {
        User: '65532:65532',
        Env: [
          'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          'NODE_COMPILE_CACHE=/shale/.compile-cache',
        ],
        Entrypoint: ENTRYPOINT,
        Labels: imageLabels(version, revision),
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: [
        { created: CREATED, created_by: 'make release: Node.js and what it needs of the base image' },
        { created: CREATED, created_by: 'make release: Shale' },
      ],
    }),
  );
  const manifest = formatManifest({
    config: descriptorOf(OCI_CONFIG, config),
    layers: layers.map(({ bytes }) => descriptorOf(OCI_LAYER, bytes)),
  });
  const descriptor = descriptorOf(OCI_MANIFEST, manifest);
  return {
    architecture,
    instance: { descriptor, platform: { os: 'linux', architecture } },
    config,
    manifest,
    layers,
    sbom,
    ...('obstacle' in cache ? { withoutCache: cache.obstacle } : {}),
  };
}

function imageLabels(version: string, revision: string): Readonly<Record<string, string>> {
  return {
    'org.opencontainers.image.description':
      'Operating-system images built on the Kubernetes cluster that runs them',
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.title': 'shale',
    'org.opencontainers.image.version': version,
  };
}

/** @returns the index of images of different platforms, and everything that it names. */
export function imageContent(images: readonly PlatformImage[]): Content & { readonly index: Descriptor } {
  const blobs = new Map<Digest, Uint8Array>();
  const manifests: Content['manifests'] = [];
  for (const { config, layers, manifest, instance } of images) {
    blobs.set(digestOf(config), config);
    for (const { digest, bytes } of layers) blobs.set(digest, bytes);
    manifests.push({ ...instance.descriptor, bytes: manifest });
  }
  const { mediaType, bytes } = imageIndex(images.map(({ instance }) => instance));
  const index = descriptorOf(mediaType, bytes);
  manifests.push({ ...index, bytes });
  return { blobs, manifests, index };
}

/**
 * Writes an OCI image layout (OCI image-spec, image-layout.md) as an archive, which `podman load`, `skopeo copy
 * oci-archive:` and `ctr images import` read.
 *
 * @param name annotation of the image in it.
 */
export async function layoutArchive(content: Content, index: Descriptor, name: string): Promise<Buffer> {
  const top = { ...index, annotations: { 'org.opencontainers.image.ref.name': name } };
  const blob = (digest: Digest, bytes: Uint8Array) => fileEntry(`/blobs/${digest.replace(':', '/')}`, bytes);
  const entries = [
    ...[...content.blobs].map(([digest, bytes]) => blob(digest, bytes)),
    ...content.manifests.map(({ digest, bytes }) => blob(digest, bytes)),
  ].sort(by(({ path }) => path));
  const archive = await archiveEntries(
    [
      fileEntry('/oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
      fileEntry('/index.json', JSON.stringify({ schemaVersion: 2, manifests: [top] })),
      ...entries,
    ],
    0,
  );
  return Buffer.concat([archive, END_OF_ARCHIVE]);
}

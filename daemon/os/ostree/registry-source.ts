import { arch } from 'node:os';
import type { DigestedPullspec } from '../../../api/references.ts';
import { describeImage, type ImageDescription } from '../../../image/append.ts';
import { goArchitecture } from '../../../image/architecture.ts';
import { readLayer } from '../../../image/layer/read-layer.ts';
import { parseReference, type Reference } from '../../../image/reference.ts';
import { parseAuthFile } from '../../../image/registry/credentials.ts';
import { createMirroredClient } from '../../../image/registry/mirrored-client.ts';
import { pullSources } from '../../../image/registry/pull-sources.ts';
import type { RegistryClient } from '../../../image/registry/registry-client.ts';
import { ContentError } from '../../../image/registry/registry-error.ts';
import { readRegistriesConf } from '../registries-conf.ts';
import { registryCertificates } from '../registry-certificates.ts';
import type { ImageSource, SourceImage, SourceLayer } from './image-source.ts';

export interface RegistrySourceOptions {
  /** The running root, whose registries.conf says where images are and whose certs.d directories which CAs to trust. */
  readonly root: string;
  /** @returns the text of a docker-style auth file; undefined where there is none. Read for each image anew. */
  readonly readAuthFile?: (signal: AbortSignal) => Promise<string | undefined>;
  /** Registries to speak plain HTTP to. */
  readonly plainHttp: ReadonlySet<string>;
  /** As of RegistryAccess. */
  readonly silenceMs?: number;
}

/**
 * Images as registries and their mirrors have them. What a registry needs is read for each image anew, so that a mirror, a
 * certificate authority or a pull secret that was just delivered counts.
 */
export function registrySource(options: RegistrySourceOptions): ImageSource {
  return {
    async open(image, signal) {
      const reference = parseReference(image);
      const client = await clientFor(reference, options, signal);
      const description = await describeImage(client, reference, goArchitecture(arch()), signal);
      return sourceImage(client, reference, description, image);
    },
  };
}

async function clientFor(
  reference: Reference,
  { root, readAuthFile, plainHttp, silenceMs }: RegistrySourceOptions,
  signal: AbortSignal,
): Promise<RegistryClient> {
  const [conf, auths] = await Promise.all([readRegistriesConf(root), readAuthFile?.(signal)]);
  const hosts = new Set(pullSources(reference, conf).map((source) => source.reference.registry));
  const certificates = new Map<string, readonly string[]>();
  for (const host of hosts) certificates.set(host, await registryCertificates(root, host));
  const access = {
    plainHttp,
    caFor: (host: string) => certificates.get(host)?.join('\n') || undefined,
    ...(silenceMs === undefined ? {} : { silenceMs }),
    ...(auths === undefined ? {} : { auths: parseAuthFile(auths) }),
  };
  return createMirroredClient(access, { conf });
}

function sourceImage(
  client: RegistryClient,
  reference: Reference,
  { manifest, config }: ImageDescription,
  image: DigestedPullspec,
): SourceImage {
  const diffIds = config.rootfs.diff_ids;
  if (diffIds.length !== manifest.layers.length) {
    throw new ContentError(`${image}: ${manifest.layers.length} layers and ${diffIds.length} diffIDs`);
  }
  return {
    labels: config.config?.Labels ?? {},
    layers: manifest.layers.map((blob, i): SourceLayer => {
      const diffId = diffIds[i];
      if (diffId === undefined) throw new ContentError(`${image}: layer ${i} has no diffID`);
      return {
        diffId,
        digest: blob.digest,
        size: blob.size,
        read: (onBytes, signal) =>
          readLayer(
            counted(client.readBlob(reference, blob, signal), onBytes),
            { mediaType: blob.mediaType, diffId },
            signal,
          ),
      };
    }),
  };
}

async function* counted(
  bytes: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    onBytes(chunk.length);
    yield chunk;
  }
}

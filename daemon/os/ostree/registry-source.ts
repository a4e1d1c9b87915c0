import { readdir, readFile } from 'node:fs/promises';
import { arch } from 'node:os';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { describeImage, type ImageDescription } from '../../../image/append.ts';
import { readLayer } from '../../../image/layer/read-layer.ts';
import { goArchitecture } from '../../../image/manifest.ts';
import { parseReference, type Reference } from '../../../image/reference.ts';
import { parseAuthFile } from '../../../image/registry/credentials.ts';
import { createMirroredClient } from '../../../image/registry/mirrored-client.ts';
import { pullSources } from '../../../image/registry/pull-sources.ts';
import type { RegistryClient } from '../../../image/registry/registry-client.ts';
import { ContentError } from '../../../image/registry/registry-error.ts';
import { isImageSignedBy } from '../../../image/signature/sign-image.ts';
import { type ConfFile, parseRegistriesConf, type Registries } from '../../../oci/registries-conf.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { PrepareRefused } from '../../records/current.ts';
import type { ImageSource, SourceImage, SourceLayer } from './image-source.ts';

interface RegistrySourceOptions {
  /** The running root, whose registries.conf says where images are and whose certs.d directories which CAs to trust. */
  readonly root: string;
  /** @returns the text of a docker-style auth file; undefined where there is none. Read again for each image. */
  readonly readAuthFile?: (signal: AbortSignal) => Promise<string | undefined>;
  /** Registries to speak plain HTTP to. */
  readonly plainHttp: ReadonlySet<string>;
  /** As of RegistryAccess. */
  readonly silenceMs?: number;
}

/**
 * Images as registries and their mirrors have them. What a registry needs is read again for each image, so that a
 * mirror, a certificate authority or a pull secret that was just delivered counts.
 */
export function registrySource(options: RegistrySourceOptions): ImageSource {
  return {
    async open(image, signal) {
      const reference = parseReference(image);
      const client = await clientFor(reference, options, signal);
      const own = goArchitecture(arch());
      const description = await describeImage(client, reference, own, signal);
      refuseOtherArchitecture(description, image, own);
      return sourceImage(client, reference, description, image);
    },
    async isSignedBy(image, publicKey, signal) {
      const { digest, ...at } = parseReference(image);
      if (digest === undefined) throw new TypeError(`${image}: expected an image by digest`);
      return isImageSignedBy(await clientFor(at, options, signal), at, { digest, publicKey }, signal);
    },
  };
}

/** An index was asked for its image; any other is for one architecture, and no other host could boot it. */
function refuseOtherArchitecture({ config }: ImageDescription, image: DigestedPullspec, own: string): void {
  if (config.architecture === own) return;
  throw new PrepareRefused(
    `${image} is for linux/${config.architecture}, and this node is linux/${own}: use a base image for both, or a separate pool for this node`,
  );
}

async function clientFor(
  reference: Reference,
  { root, readAuthFile, plainHttp, silenceMs }: RegistrySourceOptions,
  signal: AbortSignal,
): Promise<RegistryClient> {
  const [conf, auths] = await Promise.all([nodeRegistriesConf(root), readAuthFile?.(signal)]);
  const hosts = new Set(pullSources(reference, conf).map((source) => source.reference.registry));
  const certificates = new Map<string, readonly string[]>();
  for (const host of hosts) certificates.set(host, await registryCertificates(root, host));
  const access = {
    plainHttp,
    caFor: (host: string) => certificates.get(host)?.join('\n') || undefined,
    silenceMs,
    auths: auths === undefined ? undefined : parseAuthFile(auths),
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

const MAIN = '/etc/containers/registries.conf';
const DROPINS = '/etc/containers/registries.conf.d';

/**
 * Where the node pulls images from, as its container runtime reads it. Read again for each image, so that a mirror that
 * was just delivered counts.
 *
 * @param root the running root.
 * @returns no rules where the node has no such file.
 * @throws TypeError that names the file and what is wrong in it; the file system's errors.
 */
export async function nodeRegistriesConf(root: string): Promise<Registries> {
  const names = (await readdir(path.join(root, DROPINS)).catch(ignoreMissing)) ?? [];
  const dropins = names.filter((name) => name.endsWith('.conf')).sort();
  const files: ConfFile[] = [];
  for (const name of [MAIN, ...dropins.map((dropin) => `${DROPINS}/${dropin}`)]) {
    const text = await readFile(path.join(root, name), 'utf8').catch(ignoreMissing);
    if (text !== undefined) files.push({ name, text });
  }
  return parseRegistriesConf(files);
}

/** Podman's and CRI-O's directory, then Docker's (containers-certs.d(5)). */
const DIRECTORIES = ['etc/containers/certs.d', 'etc/docker/certs.d'];

/**
 * The certificate authorities that the node trusts for one registry beyond the system's: every `*.crt` of its
 * directories. Read again for each pull, so that a CA that was just delivered counts.
 *
 * @param root the running root. @param registry `host` or `host:port`, as in an image's name.
 * @returns PEM texts, in the order of directories and file names; none when the registry has no directory.
 * @throws TypeError when the registry isn't a plain host.
 */
export async function registryCertificates(root: string, registry: string): Promise<readonly string[]> {
  if (!/^[A-Za-z0-9.:[\]-]+$/.test(registry) || registry.startsWith('.')) {
    throw new TypeError(`${JSON.stringify(registry)}: expected a registry's host and perhaps port`);
  }
  const certificates: string[] = [];
  for (const directory of DIRECTORIES) {
    const place = path.join(root, directory, registry);
    const names = ((await readdir(place).catch(ignoreMissing)) ?? []).filter((name) => name.endsWith('.crt'));
    for (const name of names.sort()) certificates.push(await readFile(path.join(place, name), 'utf8'));
  }
  return certificates;
}

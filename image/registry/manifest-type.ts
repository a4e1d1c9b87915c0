export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
export const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
export const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
export const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const DOCKER_LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';

/** @returns the type of a layer, compressed by gzip, beside those that a manifest of a type has. */
export function layerType(manifest: string): string {
  return manifest === DOCKER_MANIFEST ? DOCKER_LAYER : OCI_LAYER;
}

/** What a registry is asked for. */
export const MANIFEST_TYPES: readonly string[] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST];

/**
 * Says what a manifest is. A registry of files, or a proxy before one, may send any Content-Type or none; then the
 * manifest says it itself, and one of OCI 1.0 at least by its fields (OCI image-spec, manifest.md, "mediaType" was
 * optional).
 *
 * @param header Content-Type. @returns the header's own value for what is no manifest.
 */
export function manifestType(header: string | undefined, bytes: Uint8Array): string {
  const type = (header ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (MANIFEST_TYPES.includes(type)) return type;
  const { mediaType, manifests, config } = fieldsOf(bytes);
  if (typeof mediaType === 'string' && mediaType !== '') return mediaType;
  if (manifests !== undefined) return OCI_INDEX;
  const configType = (config as { readonly mediaType?: unknown } | null | undefined)?.mediaType;
  if (typeof configType !== 'string') return type;
  return configType.startsWith('application/vnd.docker.') ? DOCKER_MANIFEST : OCI_MANIFEST;
}

function fieldsOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const root: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return typeof root === 'object' && root !== null ? (root as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

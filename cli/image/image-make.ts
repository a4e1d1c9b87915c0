import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { imageLabels, nodePaths } from '../../api/names.ts';
import type { ImageDescription } from '../../image/append.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import type { Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { type CommandError, UsageError } from '../command-line/exit-codes.ts';

/** Bytes; a rendered config is stored in etcd, whose limit for a request is smaller. */
const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Reads from the image itself what it was built from: this works without a cluster and after the MachineConfigs were
 * deleted.
 *
 * @param image its `name` is for messages.
 * @returns the rendered config that it contains, and its base image by digest.
 * @throws CommandError for an image that Shale did not build; RegistryError, ContentError, LayerError.
 */
export async function readImageMake(
  client: RegistryClient,
  at: Reference,
  image: { readonly name: string; readonly description: Pick<ImageDescription, 'manifest' | 'config'> },
  signal: AbortSignal,
): Promise<{ readonly config: MachineConfig; readonly baseImage: string }> {
  const { name, description } = image;
  const { manifest, config } = description;
  const baseImage = config.config?.Labels?.[imageLabels.baseImage];
  const [blob, diffId] = [manifest.layers.at(-1), config.rootfs.diff_ids.at(-1)];
  if (baseImage === undefined || blob === undefined || diffId === undefined) throw notOurs(name);
  let carried: MachineConfig | undefined;
  const layer = readLayer(client.readBlob(at, blob, signal), { mediaType: blob.mediaType, diffId }, signal);
  for await (const item of layer) {
    if (item.type !== 'file' || `/${item.path}` !== nodePaths.imageConfig) continue;
    carried = parseConfig(await textOf(item.content), name);
  }
  // The digest of the layer is verified only at its end.
  if (carried === undefined) throw notOurs(name);
  return { config: carried, baseImage };
}

function parseConfig(text: string, name: string): MachineConfig {
  try {
    const object = JSON.parse(text) as MachineConfig;
    if (object.kind === MachineConfigs.kind) return object;
  } catch (cause) {
    throw new UsageError(`${name}: ${nodePaths.imageConfig} can't be read`, { cause });
  }
  throw new UsageError(`${name}: ${nodePaths.imageConfig} contains no MachineConfig`);
}

async function textOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  if (content instanceof Uint8Array) return Buffer.from(content).toString('utf8');
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of content) {
    size += chunk.length;
    if (size > MAX_CONFIG_BYTES)
      throw new UsageError(`${nodePaths.imageConfig} is larger than a MachineConfig can be`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function notOurs(name: string): CommandError {
  return new UsageError(`${name} was not built by Shale and contains no MachineConfig`);
}

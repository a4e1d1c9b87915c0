import { Command } from 'commander';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import type { Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  registryClient,
  rethrow,
  withArchitecture,
  withRegistryFlags,
} from '../command-line/registry-flags.ts';
import { imageDiffCommand } from './diff-command.ts';
import { imageText } from './image-text.ts';
import { type FileView, fileView, ImageOutput, imageView, readTrust } from './image-view.ts';
import { namedReference } from './named-reference.ts';

interface InspectFlags extends RegistryFlags {
  readonly output: string;
  readonly key?: string;
  readonly architecture: string;
  readonly files?: boolean;
}

/** `shale image`: inspects and compares images in a registry. */
export function imageCommand(): Command {
  const inspect = new Command('inspect')
    .description('Show the base image, pool, rendered config, layers and transitions of an image.')
    .argument('<image>', 'host[:port]/repository[:tag][@digest]')
    .option('--files', 'also list the files of the rendered config; downloads the last layer')
    .option('--key <file>', 'public key (PEM) to verify the signature of the image with')
    .addOption(outputFlag(...TABLE_FORMATS))
    .addHelpText(
      'after',
      '\nExample:\n  shale image inspect r.example.com/os/worker@sha256:… --files --key cosign.pub',
    );
  withArchitecture(withRegistryFlags(inspect)).action(inspectImage);
  return new Command('image').addCommand(inspect).addCommand(imageDiffCommand());
}

async function inspectImage(name: string, flags: InspectFlags): Promise<void> {
  const reference = namedReference(name);
  const client = await registryClient(flags);
  const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS);
  const { view, files } = await look(client, reference, flags, signal).catch(rethrow);
  if (flags.output === 'table') print(imageText(name, view, files));
  else printAs(flags.output, ImageOutput, { ...view, files });
  if (view.signedByKey === false) {
    throw new CommandError(`${name}: ${view.digest} is not signed by the key in ${flags.key}`);
  }
}

async function look(
  client: RegistryClient,
  reference: Reference,
  { architecture, key, files }: InspectFlags,
  signal: AbortSignal,
) {
  const description = await describeImage(client, reference, architecture, signal);
  const { digest } = description;
  const trust = await readTrust(client, reference, { digest, keyFile: key }, signal);
  return {
    view: { ...imageView(description), ...trust },
    files: files === true ? await filesOf(client, reference, description, signal) : undefined,
  };
}

/** Lists the last layer, which contains the rendered config in an image of Shale. */
async function filesOf(
  client: RegistryClient,
  reference: Reference,
  { manifest, config }: ImageDescription,
  signal: AbortSignal,
): Promise<FileView[]> {
  const blob = manifest.layers.at(-1);
  const diffId = config.rootfs.diff_ids.at(-1);
  if (blob === undefined || diffId === undefined) return [];
  const files: FileView[] = [];
  const bytes = client.readBlob(reference, blob, signal);
  for await (const item of readLayer(bytes, { mediaType: blob.mediaType, diffId }, signal)) {
    const view = fileView(item, item.type === 'file' ? await lengthOf(item.content) : 0);
    if (view !== undefined) files.push(view);
  }
  return files;
}

async function lengthOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<number> {
  if (content instanceof Uint8Array) return content.length;
  let length = 0;
  for await (const chunk of content) length += chunk.length;
  return length;
}

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { putFile, removeFileOfOwnDirectory } from '../files/put-file.ts';
import { ignoreMissing } from '../files/tree-entry.ts';
import type { NodePorts } from '../host/host.ts';
import { OsCommandError } from '../os/os-command.ts';
import { stateRecord } from '../records/durable-json.ts';

/** Which images CRI-O keeps; MCO's file. */
export const CRIO_DROP_IN = '/etc/crio/crio.conf.d/50-pinned-images';
const CRIO_UNIT = 'crio.service';
const PINNED_LABEL = 'io.cri-containerd.pinned';
const COMMAND_TIMEOUT_MS = 60_000;

const PinsRecord = z.object({
  version: z.literal(1),
  containerRuntime: z.enum(['cri-o', 'containerd']),
  /** In the order in which they were requested. */
  images: z.array(z.string()),
});
/**
 * What Shale has pinned on a node. Images that somebody else pinned, such as the runtime its pause image, are not in
 * it.
 */
export type Pins = Omit<z.infer<typeof PinsRecord>, 'version'>;

const record = stateRecord('pinned-images.json', PinsRecord);

/** Does not exist where nothing was ever pinned. */
export const readPins: (root: string) => Promise<Pins | undefined> = record.read;

/**
 * Pins these images and no others that Shale has pinned. What is pinned already costs nothing.
 *
 * @param before what Shale has pinned until now. @param isPinned whether the runtime keeps an image already.
 * @throws OsCommandError, ServiceError, HostFileError.
 */
export async function keepPins(
  ports: Pick<NodePorts, 'host' | 'services' | 'relabel' | 'runOnHost'>,
  before: Pins | undefined,
  pins: Pins,
  isPinned: (image: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { root } = ports.host;
  // A node whose runtime was replaced: the configuration of the previous one no longer has an effect, and is removed.
  if (before !== undefined && before.containerRuntime !== pins.containerRuntime) {
    await keepPins(ports, before, { ...before, images: [] }, isPinned, signal);
    const isStillPinned = (image: string) => isPinned(image) && !before.images.includes(image);
    return keepPins(ports, undefined, pins, isStillPinned, signal);
  }
  switch (pins.containerRuntime) {
    case 'cri-o':
      await keepDropIn(ports, before, pins, isPinned, signal);
      break;
    case 'containerd':
      await keepLabels(ports, before, pins, isPinned, signal);
      break;
  }
  if (pins.images.length === 0) await record.remove(root);
}

const write = (root: string, pins: Pins) => record.write(root, { version: 1, ...pins });

async function keepDropIn(
  { host: { root }, services, relabel }: Pick<NodePorts, 'host' | 'services' | 'relabel'>,
  before: Pins | undefined,
  pins: Pins,
  isPinned: (image: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const present = await readFile(path.join(root, CRIO_DROP_IN), 'utf8').catch(ignoreMissing);
  const wanted = pins.images.length === 0 ? undefined : crioDropIn(pins.images);
  if (present !== undefined && before === undefined && present !== wanted) {
    throw new Error(
      `${CRIO_DROP_IN} exists and was not written for a PinnedImageSet; remove it, or give it another name`,
    );
  }
  // Written before the file: of a file without a record nobody would know whose it is.
  if (wanted !== undefined) await write(root, pins);
  // What CRI-O does not keep yet, or still does, it has not read: an earlier reload may have failed.
  if (wanted !== undefined && present === wanted && pins.images.every(isPinned)) return;
  if (wanted === undefined) {
    await removeFileOfOwnDirectory(root, CRIO_DROP_IN);
    // A runtime that was replaced is not there to be told.
    if (!(await services.isLoaded(CRIO_UNIT, signal))) return;
  } else if (present !== wanted) {
    await putFile(root, CRIO_DROP_IN, { contents: Buffer.from(wanted), mode: 0o644 });
    await relabel(root, [CRIO_DROP_IN], signal);
  }
  await services.reload(CRIO_UNIT, signal);
}

/** @returns the drop-in that has CRI-O keep these images (crio.conf(5), pinned_images). */
function crioDropIn(images: readonly string[]): string {
  const lines = images.map((image) => `  ${JSON.stringify(image)},\n`).join('');
  return `# Written by Shale for the PinnedImageSets of the node's pool.\n[crio.image]\npinned_images = [\n${lines}]\n`;
}

async function keepLabels(
  { host: { root }, runOnHost }: Pick<NodePorts, 'host' | 'runOnHost'>,
  before: Pins | undefined,
  pins: Pins,
  isPinned: (image: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const own = new Set(before?.images);
  const label = (image: string, value: string) =>
    runOnHost(['ctr', '--namespace=k8s.io', 'images', 'label', image, `${PINNED_LABEL}=${value}`], {
      timeoutMs: COMMAND_TIMEOUT_MS,
      signal,
    });
  // What somebody else has pinned is not Shale's to let go again.
  const images = pins.images.filter((image) => own.has(image) || !isPinned(image));
  const gone = [...own].filter((image) => !images.includes(image));
  await write(root, { ...pins, images: [...images, ...gone] });
  for (const image of images) if (!isPinned(image)) await label(image, 'pinned');
  for (const image of gone) {
    await label(image, '').catch((error: unknown) => {
      // The image was removed, or the runtime was, and the label with it.
      const isGone =
        error instanceof OsCommandError && (error.code === 'ENOENT' || error.stderr.includes('not found'));
      if (!isGone) throw error;
    });
  }
  await write(root, { ...pins, images });
}

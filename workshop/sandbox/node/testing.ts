import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';
import { directoryNodeLayout } from '../../../daemon/host/directory-host.ts';
import { directoryNode } from '../../../daemon/host/directory-node.ts';
import type { NodePorts } from '../../../daemon/host/node-ports.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { type MemoryImage, memorySource } from '../../../daemon/os/ostree/memory-source.ts';
import type { LayerItem } from '../../../image/layer/layer-item.ts';
import { bootNode } from './boot.ts';
import { createNode } from './create.ts';
import { removeNode } from './remove.ts';
import { stockImage } from './stock-image.ts';

/** Why tests of directory nodes can't run on this machine; nothing when they can. */
export const noDirectoryNodes: string | undefined =
  process.getuid?.() !== 0
    ? 'directory nodes need root'
    : ['ostree', 'systemd-tmpfiles'].find((program) => !isInstalled(program)) === undefined
      ? undefined
      : 'directory nodes need the packages ostree and systemd (or systemd-standalone-tmpfiles)';

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(':')
    .some((directory) => existsSync(path.join(directory, program)));
}

/** A booted directory node of a test, with images that the test makes up. */
export interface TestNode extends NodePorts, AsyncDisposable {
  readonly dir: string;
  readonly stock: DigestedPullspec;
  readonly source: ImageSource;
  /** Makes an image of the stock layer and one more, as Shale's builder does. */
  addImage(layer: readonly LayerItem[], labels?: Readonly<Record<string, string>>): DigestedPullspec;
  /** Makes an image of any layers. */
  addWholeImage(image: MemoryImage): DigestedPullspec;
  boot(): Promise<void>;
}

/** @returns a node that runs the stock image, in a temporary directory that goes when it is disposed of. */
export async function createTestNode(): Promise<TestNode> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-node-'));
  const images = new Map<DigestedPullspec, MemoryImage>();
  const addWholeImage = (image: MemoryImage): DigestedPullspec => {
    const hash = createHash('sha256').update(JSON.stringify(image)).digest('hex');
    const name = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${hash}`);
    images.set(name, image);
    return name;
  };
  const stock = addWholeImage({ labels: {}, layers: [stockImage()] });
  const source = memorySource(images);
  await createNode({ dir, name: 'test', image: stock, source, signal: AbortSignal.timeout(30_000) });
  await bootNode(dir);
  return {
    ...directoryNode(dir, source),
    dir,
    stock,
    source,
    addWholeImage,
    addImage: (layer, labels = {}) => addWholeImage({ labels, layers: [stockImage(), layer] }),
    boot: async () => {
      await bootNode(directoryNodeLayout(dir).dir);
    },
    [Symbol.asyncDispose]: () => removeNode(dir),
  };
}

/** @returns a layer's file, owned by root. */
export function layerFile(name: string, content: string, mode = 0o644): LayerItem {
  return { type: 'file', path: name, mode, uid: 0, gid: 0, content: Buffer.from(content) };
}

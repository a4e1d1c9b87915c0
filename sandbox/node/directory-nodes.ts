import { watch } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { directoryNodeLayout } from '../../daemon/host/directory-host.ts';
import { memorySource } from '../../daemon/os/ostree/memory-source.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { shellEntries } from '../engine/shell.ts';
import type { NodeKind } from '../node-kind.ts';
import { pushImage } from '../registry.ts';
import { bootNode } from './boot.ts';
import { createNode } from './create.ts';
import { stockImage } from './stock-image.ts';

/** @returns nodes that are directories: a real ostree sysroot, booted by choosing a deployment and a new boot id. */
export function directoryNodes(): NodeKind {
  let stock: readonly LayerEntry[] = [];
  return {
    name: 'directory',
    prepare: async () => undefined,
    async pushStock(registry, withShell, signal) {
      stock = [...stockImage(), ...(withShell ? shellEntries() : [])];
      return pushImage(registry, 'os/stock', { entries: stock }, signal);
    },
    async install(nodes, image, signal) {
      const source = memorySource(new Map([[image, { labels: {}, layers: [stock] }]]));
      await Promise.all(
        nodes.map(({ name, directory: dir }) => createNode({ dir, name, image, source, signal })),
      );
    },
    async boot(directory, signal) {
      const { rebootRequest } = directoryNodeLayout(directory);
      const { bootID } = await bootNode(directory);
      const down = untilRequested(directory, rebootRequest, signal);
      return { bootID, down, kill: async () => undefined };
    },
    daemonArguments: async (directory) => ['--directory-node', directory],
  };
}

/** Waits for the file by which a directory node's daemon asks for a reboot, and takes it away. */
async function untilRequested(directory: string, request: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = async () => {
    const found = await stat(request).catch(() => undefined);
    if (found !== undefined || signal.aborted) resolve();
  };
  const watcher = watch(directory, () => void look());
  const stop = () => resolve();
  signal.addEventListener('abort', stop);
  try {
    await look();
    await promise;
    await rm(request, { force: true });
  } finally {
    watcher.close();
    signal.removeEventListener('abort', stop);
  }
}

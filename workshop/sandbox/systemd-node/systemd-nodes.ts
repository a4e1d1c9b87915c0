import type { LayerEntry } from '../../../image/layer/entry.ts';
import { createNode, nameNode } from '../node/create.ts';
import { memorySource } from '../node/memory-source.ts';
import type { NodeKind } from '../node-kind.ts';
import { pushImage } from '../registry.ts';
import { cloneNode } from './clone-node.ts';
import { readMachineRecord } from './machine-record.ts';
import { bootSystemdNode } from './node.ts';
import { BUILDING_ROOTFS } from './rootfs.ts';
import { ensureRootfsArchive, type RootfsArchive } from './rootfs-archive.ts';
import { rootfsSource } from './rootfs-source.ts';
import { systemdStockLayer } from './stock-layer.ts';

/** @param cacheDirectory where Debian's root file system is kept from one sandbox to the next. */
export function systemdNodes(cacheDirectory: string): NodeKind {
  let stock: { readonly archive: RootfsArchive; readonly layer: readonly LayerEntry[] } | undefined;
  const prepared = () => {
    if (stock === undefined) throw new Error('the nodes were not prepared');
    return stock;
  };
  return {
    name: 'systemd',
    async prepare(onProgress, signal) {
      const archive = await ensureRootfsArchive(cacheDirectory, signal, () => onProgress(BUILDING_ROOTFS));
      stock = { archive, layer: await systemdStockLayer(archive.rootfs) };
    },
    pushStock: (registry, _withShell, signal) => {
      const { archive: onto, layer: entries } = prepared();
      return pushImage(registry, 'os/stock', { entries, onto }, signal);
    },
    async install([first, ...others], image, signal) {
      if (first === undefined) return;
      const { archive, layer } = prepared();
      const source = await rootfsSource(archive, layer);
      await createNode({ dir: first.directory, name: first.name, image, source, signal });
      // Its repository is most of the work, and all nodes have the same.
      await Promise.all(
        others.map(async ({ name, directory }) => {
          await cloneNode(first.directory, directory, signal);
          await nameNode(directory, name);
        }),
      );
    },
    async boot(directory, signal) {
      // Its images come from where its daemon says.
      const { machine } = await bootSystemdNode(directory, memorySource(new Map()), signal);
      const down = machine.off.then(() => undefined);
      return { bootID: await machine.bootID(), down, kill: machine.kill };
    },
    daemonHost: async (directory) => {
      const { leader } = await readMachineRecord(directory);
      return { args: ['--host-root', `/proc/${leader}/root`, '--host-init', String(leader)] };
    },
  };
}

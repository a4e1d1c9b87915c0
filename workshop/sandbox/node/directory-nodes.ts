import path from 'node:path';
import { execa } from 'execa';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { MachineEnd, NodeKind } from '../node-kind.ts';
import { pushImage } from '../registry.ts';
import { bootNode, untilRebootRequested } from './boot.ts';
import { createNodes } from './create.ts';
import { directoryNodeLayout } from './directory-host.ts';
import { memorySource } from './memory-source.ts';
import { shellEntries, stockImage } from './stock-image.ts';

const DAEMON = path.join(import.meta.dirname, 'daemon.ts');

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
      // Copied and not linked: some of what happens to a directory node in a test writes to its files in place.
      await createNodes(nodes, { image, source, signal }, (from, to) =>
        execa('cp', ['--archive', '--no-target-directory', from, to], { cancelSignal: signal }),
      );
    },
    async boot(directory, signal) {
      const { bootID } = await bootNode(directory);
      const down = untilRebootRequested(directory, signal).then(
        (request): MachineEnd => (request?.off === true ? 'off' : 'rebooting'),
      );
      return { bootID, down, kill: async () => undefined };
    },
    daemonHost: async (directory) => ({
      program: DAEMON,
      args: ['--host-root', directoryNodeLayout(directory).root],
    }),
  };
}

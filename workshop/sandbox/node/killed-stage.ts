import path from 'node:path';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../../daemon/host/directory-host.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { memorySource } from '../../../daemon/os/ostree/memory-source.ts';
import { OstreeBackend } from '../../../daemon/os/ostree/ostree-backend.ts';
import { stockImage } from './stock-image.ts';
import { layerFile } from './testing.ts';

/**
 * A process that stages an image and finalizes it, and dies by SIGKILL before one of the commands for it, for
 * backend.test.ts. It ends well when there were no more commands than that.
 *
 *   node killed-stage.ts <node's directory> <image> <number of commands to run before>
 */
const [dir = '', image = '', commands = ''] = process.argv.slice(2);
const layout = directoryNodeLayout(dir);
const name = parseDigestedPullspec(image);
const signal = AbortSignal.timeout(30_000);
const run = osCommandRunner();
let left = Number(commands);
const backend = new OstreeBackend({
  root: layout.root,
  sysroot: layout.sysroot,
  source: memorySource(
    new Map([[name, { labels: {}, layers: [stockImage(), [layerFile('/etc/chrony.conf', 'killed\n')]] }]]),
  ),
  bootedDirectory: async () => path.join(layout.sysroot, (await readDirectoryMachine(layout)).deployment),
  run: async (command, options) => {
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    left -= 1;
    return run(command, options);
  },
});
await backend.stage(name, { extraKernelArguments: { remove: [], add: [] }, signal });
await backend.finalizeStaged(new Map(), signal);

import path from 'node:path';
import { checkRunner } from '../../../daemon/host/check-runner.ts';
import { chpasswd } from '../../../daemon/host/chpasswd.ts';
import type { NodePorts } from '../../../daemon/host/host.ts';
import { noLabels, noWrongLabels } from '../../../daemon/host/selinux-labels.ts';
import { osCommandRunner, type RunOsCommand } from '../../../daemon/os/os-command.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { OstreeBackend } from '../../../daemon/os/ostree/ostree-backend.ts';
import { directoryHost, directoryNodeLayout, readDirectoryMachine } from './directory-host.ts';
import { serviceRecorder } from './service-recorder.ts';

/**
 * @param dir a directory node that was created and booted (sandbox/node).
 * @param source where its images come from.
 */
export function directoryNode(dir: string, source: ImageSource): NodePorts {
  const layout = directoryNodeLayout(dir);
  const { root, sysroot } = layout;
  return {
    host: directoryHost(layout),
    services: serviceRecorder(layout),
    setPasswords: chpasswd(osCommandRunner()),
    relabel: noLabels,
    wrongLabels: noWrongLabels,
    signatures: source,
    images: source,
    runOnHost: programsOf(root),
    backend: new OstreeBackend({
      root,
      sysroot,
      source,
      bootedDirectory: async () => path.join(sysroot, (await readDirectoryMachine(layout)).deployment),
    }),
    // Nothing of such a node runs: its checks are programs of this machine that look at its directory.
    runCheck: checkRunner({ root, rootInside: root, prefix: [] }),
  };
}

/** Programs of the directory alone: what this machine has installed is not the node's. */
function programsOf(root: string): RunOsCommand {
  const run = osCommandRunner();
  return ([program, ...words], options) => run([path.join(root, 'usr/bin', program), ...words], options);
}

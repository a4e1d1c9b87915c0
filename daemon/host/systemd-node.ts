import path from 'node:path';
import { osCommandRunner } from '../os/os-command.ts';
import type { ImageSource } from '../os/ostree/image-source.ts';
import { OstreeBackend } from '../os/ostree/ostree-backend.ts';
import { checkRunner } from './check-runner.ts';
import { chpasswd } from './chpasswd.ts';
import type { NodePorts } from './node-ports.ts';
import { systemctl } from './systemctl.ts';
import { bootedDirectory, HOST_INIT, hostNamespaces, systemdHost } from './systemd-host.ts';

/**
 * @param root the host's root as the daemon sees it: `/` when it runs on the host itself, otherwise where the pod mounts
 *   it; then commands are run in the host's namespaces.
 * @param source where the host's images come from.
 * @param init process id of the host's init, as the daemon sees it; another than 1 where the host is a container.
 */
export function systemdNode(root: string, source: ImageSource, init = HOST_INIT): NodePorts {
  const onHost = path.resolve(root) === '/';
  const prefix = onHost ? [] : hostNamespaces(init);
  const run = osCommandRunner(prefix);
  const commandPath = (place: string) => (onHost ? place : path.join('/', path.relative(root, place)));
  const sysroot = path.join(root, 'sysroot');
  return {
    host: systemdHost({ root, init, run }),
    services: systemctl(run, commandPath),
    setPasswords: chpasswd(run, commandPath),
    backend: new OstreeBackend({
      root,
      sysroot,
      source,
      run,
      commandPath,
      bootedDirectory: () => bootedDirectory(sysroot, root),
    }),
    runCheck: checkRunner({ root, rootInside: '/', prefix }),
  };
}

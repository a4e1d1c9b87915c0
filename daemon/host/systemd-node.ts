import path from 'node:path';
import type { OsBackend } from '../os/backend.ts';
import { bootc } from '../os/bootc/bootc.ts';
import { ComposefsBackend } from '../os/bootc-composefs/composefs-backend.ts';
import { DetectedBackend, type DetectedName, detectBackend } from '../os/detect-backend.ts';
import { ImageToolBackend } from '../os/image-tool/image-tool-backend.ts';
import { osCommandRunner, type RunOsCommand } from '../os/os-command.ts';
import type { BackendName } from '../os/os-tool.ts';
import type { ImageSource } from '../os/ostree/image-source.ts';
import { OstreeBackend } from '../os/ostree/ostree-backend.ts';
import { rpmOstree } from '../os/rpm-ostree/rpm-ostree.ts';
import { checkRunner } from './check-runner.ts';
import { chpasswd } from './chpasswd.ts';
import type { NodePorts } from './host.ts';
import { selinuxComparison, selinuxLabels } from './selinux-labels.ts';
import { Systemctl } from './systemctl.ts';
import { bootedDirectory, HOST_INIT, hostNamespaces, systemdHost } from './systemd-host.ts';
import { makeWritable } from './writable-mounts.ts';

interface SystemdNodeOptions {
  /**
   * The host's root as the daemon sees it: `/` when it runs on the host itself, otherwise where the pod mounts it; then
   * commands are run in the host's namespaces.
   */
  readonly root: string;
  /** Where the host's images come from. */
  readonly source: ImageSource;
  /** Process id of the host's init, as the daemon sees it; another than 1 where the host is a container. */
  readonly init?: number;
  /** Where the node keeps its pull secret, as the host sees it. */
  readonly pullSecretFile: string;
  /** What keeps the host's operating system; found out unless given. */
  readonly osBackend?: BackendName | undefined;
}

/** @returns a machine with systemd, whatever keeps its operating system. */
export function systemdNode(options: SystemdNodeOptions): NodePorts {
  const { root, init = HOST_INIT, osBackend } = options;
  const onHost = path.resolve(root) === '/';
  const prefix = onHost ? [] : hostNamespaces(init);
  const run = osCommandRunner(prefix);
  const commandPath = (place: string) => (onHost ? place : path.join('/', path.relative(root, place)));
  const remount = (place: string, signal: AbortSignal) => makeWritable(place, { onHost, signal });
  return {
    host: systemdHost({ root, init, run }),
    services: new Systemctl(run),
    setPasswords: chpasswd(run, { commandPath }),
    signatures: options.source,
    images: options.source,
    runOnHost: run,
    relabel: selinuxLabels(root, run, commandPath),
    wrongLabels: selinuxComparison(root, run),
    backend: new DetectedBackend(async ({ packages }, signal) => {
      const name = await detectBackend({ root, run, requested: osBackend, forPackages: packages }, signal);
      await remount(path.join(root, 'sysroot'), signal);
      return backendOf(name, { ...options, run, commandPath, remount });
    }),
    runCheck: checkRunner({ root, rootInside: '/', prefix }),
  };
}

function backendOf(
  name: DetectedName,
  {
    root,
    source,
    pullSecretFile,
    run,
    commandPath,
    remount,
  }: SystemdNodeOptions & {
    readonly run: RunOsCommand;
    readonly commandPath: (place: string) => string;
    /** Has the daemon write to a file system that the host has read-only. */
    readonly remount: (place: string, signal: AbortSignal) => Promise<void>;
  },
): OsBackend {
  const sysroot = path.join(root, 'sysroot');
  const common = {
    root,
    sysroot,
    source,
    run,
    commandPath,
  };
  switch (name) {
    case 'ostree':
      return new OstreeBackend({
        ...common,
        commandSysroot: '/',
        bootedDirectory: () => bootedDirectory(sysroot, root),
      });
    case 'bootc':
      return new ImageToolBackend({ ...common, pullSecretFile, tool: bootc(run) });
    case 'bootc-composefs':
      return new ComposefsBackend({
        ...common,
        pullSecretFile,
        relabel: selinuxLabels(root, run, commandPath),
        makeWritable: remount,
      });
    case 'rpm-ostree':
      return new ImageToolBackend({ ...common, pullSecretFile, tool: rpmOstree(run) });
  }
}

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { NodePorts } from '../../../daemon/host/host.ts';
import { systemdNode } from '../../../daemon/host/systemd-node.ts';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { directoryNodeLayout } from '../node/directory-host.ts';
import { bootMachine, type MachineOptions, type SystemdMachine, writeMachineRecord } from './machine.ts';

const PULL_SECRET = '/var/lib/kubelet/config.json';

/** One boot of a node that createNode made of an image with systemd. */
export interface BootedNode extends NodePorts {
  readonly machine: SystemdMachine;
}

/** What a machine may have beside its deployment. */
export type MoreOfMachine = Partial<
  Pick<MachineOptions, 'bootMs' | 'init' | 'initramfs' | 'network' | 'nspawnArguments'>
>;

/**
 * Boots what the node's bootloader has first, as ostree-prepare-root mounts it: /usr can't be written to until it is
 * unlocked, /etc is the deployment's own, /var is that of all deployments.
 *
 * @param dir of the node. @param source where its images come from. @param more as of bootMachine.
 * @returns the machine, and what a daemon acts on it by. @throws when there is no deployment or it doesn't come up.
 */
export async function bootSystemdNode(
  dir: string,
  source: ImageSource,
  signal: AbortSignal,
  { nspawnArguments = [], ...more }: MoreOfMachine = {},
): Promise<BootedNode> {
  const { sysroot } = directoryNodeLayout(dir);
  const [first] = await listDeployments(sysroot);
  if (first === undefined) throw new Error(`${sysroot}: no deployment to boot; the node was not created`);
  const { directory } = first;
  const booted = path.join(dir, 'ostree-booted');
  await writeFile(booted, '');
  const machine = await bootMachine({
    root: directory,
    nspawnArguments: [
      `--bind-ro=${path.join(directory, 'usr')}:/usr`,
      `--bind=${path.resolve(directory, '../../var')}:/var`,
      `--bind=${sysroot}:/sysroot`,
      `--bind=${path.join(sysroot, 'boot')}:/boot`,
      `--bind-ro=${booted}:/run/ostree-booted`,
      ...nspawnArguments,
    ],
    consoleFile: path.join(dir, 'console'),
    ...more,
    signal,
  });
  const deployment = path.relative(sysroot, directory);
  const { leader } = machine;
  await writeMachineRecord(dir, { bootID: await machine.bootID(), deployment, leader });
  // What the daemon of a pod acts by, with another init than the kernel's.
  const { root, leader: init } = machine;
  return { machine, ...systemdNode({ root, source, init, pullSecretFile: PULL_SECRET }) };
}

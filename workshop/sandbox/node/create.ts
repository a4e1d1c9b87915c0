import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { formatOrigin, listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import { imageRef, stateDirectory } from '../../../daemon/os/ostree/image-record.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { importImage } from '../../../daemon/os/ostree/import-image.ts';
import { ostree } from '../../../daemon/os/ostree/ostree.ts';
import type { InstalledNode } from '../node-kind.ts';
import { directoryNodeLayout } from './directory-host.ts';

export interface CreateNodeOptions {
  /** The node's own directory; created if it doesn't exist. */
  readonly dir: string;
  readonly name: string;
  /** What the node comes with. */
  readonly image: DigestedPullspec;
  readonly source: ImageSource;
  /** The host's own kernel arguments, beside the image's. */
  readonly kernelArguments?: readonly string[];
  /**
   * `auto` has ostree write the configuration of the bootloader that it finds in the sysroot; there is none otherwise.
   */
  readonly bootloader?: 'auto' | 'none';
  readonly signal: AbortSignal;
}

/** The name of the stateroot; every node has one operating system. */
const OS_NAME = 'stock';
const HOST_KERNEL_ARGUMENTS = ['root=LABEL=root', 'rw', 'console=ttyS0'];
const INIT_TIMEOUT_MS = 60_000;

/**
 * Installs a directory node as an installer would a machine: an ostree sysroot with the image as its only deployment,
 * and a host name and machine id in /etc. It is not booted yet.
 *
 * @throws OsCommandError, and what importing the image throws.
 */
export async function createNode(options: CreateNodeOptions): Promise<void> {
  const { dir, name, image, source, bootloader = 'none', signal } = options;
  const { sysroot } = directoryNodeLayout(dir);
  const run = osCommandRunner();
  const commands = ostree(run, sysroot);
  await mkdir(sysroot, { recursive: true });
  const initial: readonly [string, ...string[]][] = [
    ['ostree', 'admin', 'init-fs', '--modern', sysroot],
    ['ostree', 'admin', 'os-init', `--sysroot=${sysroot}`, OS_NAME],
    ['ostree', `--repo=${sysroot}/ostree/repo`, 'config', 'set', 'sysroot.bootloader', bootloader],
    // A sandbox doesn't outlive a power failure, and an fsync for each object is most of an import's time.
    ['ostree', `--repo=${sysroot}/ostree/repo`, 'config', 'set', 'core.fsync', 'false'],
  ];
  for (const command of initial) await run(command, { timeoutMs: INIT_TIMEOUT_MS, signal });

  const context = { ostree: commands, sysroot, commandPath: (place: string) => place, source };
  const { kernelArguments } = await importImage(context, image, { signal });
  const originFile = path.join(stateDirectory(sysroot), 'origin');
  await writeFile(originFile, formatOrigin(imageRef(image), image));
  await commands.deploy(
    {
      osName: OS_NAME,
      ref: imageRef(image),
      originFile,
      kernelArguments: [...(options.kernelArguments ?? HOST_KERNEL_ARGUMENTS), ...kernelArguments],
    },
    signal,
  );
  await nameNode(dir, name);
}

/**
 * Installs several nodes alike: the first, whose repository is most of the work, and the others as copies of it.
 *
 * @param copy makes a node's directory, which does not exist yet, of another's.
 * @throws what createNode and the copy throw.
 */
export async function createNodes(
  [first, ...others]: readonly InstalledNode[],
  options: Omit<CreateNodeOptions, 'dir' | 'name'>,
  copy: (from: string, to: string) => Promise<unknown>,
): Promise<void> {
  if (first === undefined) return;
  await createNode({ ...options, dir: first.directory, name: first.name });
  await Promise.all(
    others.map(async ({ name, directory }) => {
      await copy(first.directory, directory);
      await nameNode(directory, name);
    }),
  );
}

/** Gives a node that was installed, or copied, its host name and a machine id of its own. */
export async function nameNode(dir: string, name: string): Promise<void> {
  const { sysroot } = directoryNodeLayout(dir);
  for (const deployment of await listDeployments(sysroot)) {
    await writeFile(path.join(deployment.directory, 'etc/hostname'), `${name}\n`);
    await writeFile(
      path.join(deployment.directory, 'etc/machine-id'),
      `${crypto.randomUUID().replaceAll('-', '')}\n`,
    );
  }
}

const TIMEOUT_MS = 60_000;

/** Deletes a directory node. ostree makes deployments immutable (chattr(1)), so a plain deletion would fail. */
export async function removeNode(dir: string, signal = AbortSignal.timeout(TIMEOUT_MS)): Promise<void> {
  const deploy = path.join(directoryNodeLayout(dir).sysroot, 'ostree/deploy');
  const deployments: string[] = [];
  for (const os of await readdir(deploy).catch(() => [])) {
    for (const name of await readdir(path.join(deploy, os, 'deploy')).catch(() => [])) {
      if (!name.endsWith('.origin')) deployments.push(path.join(deploy, os, 'deploy', name));
    }
  }
  if (deployments.length > 0) {
    // File systems without that attribute refuse it, and then there is nothing to clear.
    await osCommandRunner()(['chattr', '-i', ...deployments], { timeoutMs: TIMEOUT_MS, signal }).catch(
      () => undefined,
    );
  }
  // A command of ostree that ended with its daemon may write for a moment longer.
  await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { removeNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { cachedDisk, diskIn } from '../virtual-machine/cached-disk.ts';
import { KERNEL_ARGUMENTS, writeDisk } from '../virtual-machine/disk.ts';
import type { Installed, VirtualSystem } from '../virtual-machine/virtual-system.ts';
import { HOST_ARGUMENTS, installByBootc } from './install-bootc.ts';
import { ONE_PROCESSOR, virtualRecipe } from './virtual-recipe.ts';

const COMMAND_MS = 60_000;

/** @param files of bootc. @returns machines that bootc keeps with ostree, and a BIOS and extlinux boot. */
export function bootcOstreeSystem(files: string): VirtualSystem {
  return {
    recipe: () => virtualRecipe(files),
    bootable: true,
    makeDisk,
    qemuArguments: async () => ONE_PROCESSOR,
  };
}

function makeDisk({ image, archive, registryPort, signal }: Installed): Promise<string> {
  return cachedDisk([image, KERNEL_ARGUMENTS, 'bootc'], async (directory) => {
    const dir = path.join(directory, 'node');
    await mkdir(dir);
    try {
      await installByBootc({ dir, image, archive, registry: `127.0.0.1:${registryPort}`, signal });
      await addBootloader(directoryNodeLayout(dir).sysroot, signal);
      await writeDisk(diskIn(directory), dir, signal);
    } finally {
      await removeNode(dir);
    }
  });
}

/**
 * bootc installs none of its own here. ostree writes the configuration of this one then, and with each later
 * deployment.
 */
async function addBootloader(sysroot: string, signal: AbortSignal): Promise<void> {
  const boot = path.join(sysroot, 'boot');
  await writeFile(path.join(boot, 'loader/syslinux.cfg'), 'TIMEOUT 1\n');
  await mkdir(path.join(boot, 'syslinux'));
  await symlink('../loader/syslinux.cfg', path.join(boot, 'syslinux/syslinux.cfg'));
  const limits = { timeoutMs: COMMAND_MS, signal };
  const set = ['config', 'set', 'sysroot.bootloader', 'syslinux'];
  await osCommandRunner()(['ostree', `--repo=${sysroot}/ostree/repo`, ...set], limits);
  const more = KERNEL_ARGUMENTS.filter((argument) => !HOST_ARGUMENTS.includes(argument));
  await osCommandRunner()(
    [
      'ostree',
      'admin',
      'instutil',
      'set-kargs',
      `--sysroot=${sysroot}`,
      '--merge',
      ...more.map((argument) => `--append=${argument}`),
    ],
    limits,
  );
}

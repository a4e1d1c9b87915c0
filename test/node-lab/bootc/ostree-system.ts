import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { removeNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { cachedDisk, diskIn } from '../virtual-machine/cached-disk.ts';
import { KERNEL_ARGUMENTS, writeDisk } from '../virtual-machine/disk.ts';
import type { Installed, VirtualSystem } from '../virtual-machine/virtual-system.ts';
import { installByBootc } from './install-bootc.ts';
import { virtualRecipe } from './virtual-recipe.ts';

const COMMAND_MS = 60_000;

/** @param files of bootc. @returns machines that bootc keeps with ostree, and a BIOS and extlinux boot. */
export function bootcOstreeSystem(files: string): VirtualSystem {
  return { recipe: () => virtualRecipe(files), bootable: true, makeDisk };
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

/** bootc installs none of its own here; ostree writes the configuration of this one with each deployment that comes after. */
async function addBootloader(sysroot: string, signal: AbortSignal): Promise<void> {
  const boot = path.join(sysroot, 'boot');
  const entries = path.join(boot, 'loader/entries');
  const [name = ''] = await readdir(entries);
  const file = path.join(entries, name);
  const text = await readFile(file, 'utf8');
  const more = KERNEL_ARGUMENTS.filter((argument) => !text.includes(` ${argument} `));
  const entry = text.replace(/^options (.*)$/m, `options ${more.join(' ')} $1`);
  await writeFile(file, entry);
  const value = (key: string) => new RegExp(`^${key} (.*)$`, 'm').exec(entry)?.[1];
  const configuration = [
    ...['TIMEOUT 1', 'DEFAULT lab', 'LABEL lab'],
    ...[`\tKERNEL ${value('linux')}`, `\tINITRD ${value('initrd')}`, `\tAPPEND ${value('options')}`],
  ];
  await writeFile(path.join(boot, 'loader/syslinux.cfg'), `${configuration.join('\n')}\n`);
  await mkdir(path.join(boot, 'syslinux'));
  await symlink('../loader/syslinux.cfg', path.join(boot, 'syslinux/syslinux.cfg'));
  const set = ['ostree', `--repo=${sysroot}/ostree/repo`, 'config', 'set', 'sysroot.bootloader'] as const;
  await osCommandRunner()([...set, 'syslinux'], { timeoutMs: COMMAND_MS, signal });
}

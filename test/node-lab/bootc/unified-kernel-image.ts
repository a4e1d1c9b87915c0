import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { deadline } from '../../fixtures/patience.ts';

const COMMAND_MS = 120_000;
const STUB = 'usr/lib/systemd/boot/efi/linuxx64.efi.stub';
/** Sections are a page apart (systemd-stub(7)). */
const PAGE = 4096;

/**
 * Makes a unified kernel image as systemd-stub(7) has it, of the kernel and the initramfs of a root file system.
 *
 * @param rootfs with systemd's stub. @param commandLine of the kernel.
 * @returns the file of an image of bootc's. @throws OsCommandError where objcopy (binutils) fails or isn't there.
 */
export async function unifiedKernelImage(rootfs: string, commandLine: string): Promise<LayerEntry> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-uki-'));
  try {
    const modules = path.join(rootfs, 'usr/lib/modules');
    const [version = ''] = await readdir(modules);
    const commandLineFile = path.join(directory, 'cmdline');
    await writeFile(commandLineFile, commandLine);
    const sections = {
      '.osrel': path.join(rootfs, 'usr/lib/os-release'),
      '.cmdline': commandLineFile,
      '.linux': path.join(modules, version, 'vmlinuz'),
      '.initrd': path.join(modules, version, 'initramfs.img'),
    };
    const stub = path.join(rootfs, STUB);
    let address = await endOf(stub);
    const add: string[] = [];
    for (const [section, file] of Object.entries(sections)) {
      add.push('--add-section', `${section}=${file}`, '--change-section-vma', `${section}=${address}`);
      address += Math.ceil((await readFile(file)).length / PAGE) * PAGE;
    }
    const made = path.join(directory, 'made.efi');
    await run('objcopy', ...add, stub, made);
    const content = await readFile(made);
    return { type: 'file', path: `/boot/EFI/Linux/${version}.efi`, mode: 0o644, uid: 0, gid: 0, content };
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** @returns the first address after what a PE file has. */
async function endOf(file: string): Promise<number> {
  const headers = await run('objdump', '-h', file);
  const ends = [...headers.matchAll(/^ *\d+ \S+ +([0-9a-f]{8}) +([0-9a-f]{16}) /gm)].map(
    ([, size, address]) => Number.parseInt(size ?? '', 16) + Number.parseInt(address ?? '', 16),
  );
  return Math.ceil(Math.max(...ends) / PAGE) * PAGE;
}

function run(...command: [string, ...string[]]): Promise<string> {
  return osCommandRunner()(command, { timeoutMs: COMMAND_MS, signal: deadline(COMMAND_MS) });
}

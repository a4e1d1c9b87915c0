import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { imageKernelArguments } from '../../daemon/os/ostree/kernel-arguments.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import type { MemoryImage } from '../../workshop/sandbox/node/memory-source.ts';
import { writeTree } from './composefs-tree.ts';

/** A deployment's BLS entry, as far as bootc goes by it. */
export interface Entry {
  readonly verity: string;
  readonly arguments: readonly string[];
  /** A unified kernel image, in place of a kernel and an initramfs. */
  readonly isUnified?: boolean;
}

/** As a directory node's (workshop/sandbox/node/directory-host.ts). */
const Boot = z.object({ bootID: z.string(), deployment: z.string(), bootCount: z.number() });
const Service = z.object({
  /** Whether bootc-finalize-staged.service was started in this boot. */
  isStarted: z.boolean(),
  /** Its ExecStop as systemd has read it. */
  stops: z.array(z.string()),
});
const Note = z.object({ depl_id: z.string(), finalization_locked: z.boolean() });
const Origin = z.object({ image: z.string(), kernel: z.string() });

const FINALIZE = '/usr/bin/bootc composefs-finalize-staged';
const SETTING = 'run/systemd/system/bootc-finalize-staged.service.d';

/**
 * The disks, the firmware and systemd of a machine on which bootc keeps deployments in composefs, as directories:
 * images are trees below /sysroot/composefs/images, the EFI system partition is beside the root, and nothing runs.
 */
export class ComposefsMachine {
  readonly dir: string;
  readonly root: string;
  readonly sysroot: string;
  readonly #esp: string;

  /** @param dir of the machine. */
  constructor(dir: string) {
    this.dir = dir;
    this.root = path.join(dir, 'root');
    this.sysroot = path.join(this.root, 'sysroot');
    this.#esp = path.join(dir, 'esp/loader');
  }

  imageTree(verity: string): string {
    return path.join(this.sysroot, 'composefs/images', verity);
  }

  state(verity: string): string {
    return path.join(this.sysroot, 'state/deploy', verity);
  }

  get #boot(): z.infer<typeof Boot> | undefined {
    const file = directoryNodeLayout(this.dir).machine;
    return existsSync(file) ? Boot.parse(readJson(file)) : undefined;
  }

  get booted(): string {
    return path.basename(this.#boot?.deployment ?? '');
  }

  /** @returns the bootloader's entries, or those that a finalization makes so; undefined where there are none. */
  entries(which: 'entries' | 'entries.staged' = 'entries'): readonly Entry[] | undefined {
    const directory = path.join(this.#esp, which);
    if (!existsSync(directory)) return undefined;
    const texts = this.#textsOf(directory);
    const key = (text: string) => /^sort-key (.*)$/m.exec(text)?.[1] ?? '';
    // systemd-boot: ascending.
    return texts
      .toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
      .map((text) => {
        const [last = '', ...rest] = (/^options (.*)$/m.exec(text)?.[1] ?? '').split('\t').toReversed();
        return {
          verity: last.replace('composefs=?', ''),
          arguments: rest.toReversed(),
          isUnified: /^uki /m.test(text),
        };
      });
  }

  #textsOf(directory: string): readonly string[] {
    return readdirSync(directory).map((name) => readFileSync(path.join(directory, name), 'utf8'));
  }

  /** @returns whether an entry has lost its content, by which bootc reports nothing of the host. */
  hasEmptyEntry(): boolean {
    const directories = ['entries', 'entries.staged'].map((name) => path.join(this.#esp, name));
    return directories
      .filter((directory) => existsSync(directory))
      .some((directory) => this.#textsOf(directory).includes(''));
  }

  get #unwritten(): string {
    return path.join(this.dir, 'unwritten');
  }

  /** All that was written is on the disk. */
  sync(): void {
    rmSync(this.#unwritten, { force: true });
  }

  /** What was written last isn't on the disk: bootc does not have entries written, and FAT keeps their names alone. */
  losePower(): void {
    if (existsSync(this.#unwritten)) {
      for (const which of ['entries', 'entries.staged']) {
        const directory = path.join(this.#esp, which);
        if (!existsSync(directory)) continue;
        for (const name of readdirSync(directory)) writeFileSync(path.join(directory, name), '');
      }
    }
    this.sync();
  }

  writeEntries(which: 'entries' | 'entries.staged', entries: readonly Entry[]): void {
    const directory = path.join(this.#esp, which);
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    for (const [index, entry] of entries.entries()) {
      const options = [...entry.arguments, `composefs=?${entry.verity}`].join('\t');
      const kernel = entry.isUnified === true ? 'uki /EFI/Linux/bootc/image.efi\n' : '';
      const text = `title Shale\nsort-key bootc-shale-${index}\nversion ${index}\n${kernel}options ${options}\n`;
      writeFileSync(path.join(directory, `bootc_shale-1-${1 - index}.conf`), text);
    }
    writeFileSync(this.#unwritten, '');
  }

  /** @returns whether there was anything to make the bootloader's. */
  exchangeEntries(): boolean {
    const staged = path.join(this.#esp, 'entries.staged');
    if (!existsSync(staged)) return false;
    rmSync(path.join(this.#esp, 'entries'), { recursive: true, force: true });
    renameSync(staged, path.join(this.#esp, 'entries'));
    writeFileSync(this.#unwritten, '');
    return true;
  }

  dropStagedEntries(): void {
    rmSync(path.join(this.#esp, 'entries.staged'), { recursive: true, force: true });
  }

  get #noteFile(): string {
    return path.join(this.root, 'run/composefs/staged-deployment');
  }

  note(): z.infer<typeof Note> | undefined {
    return existsSync(this.#noteFile) ? Note.parse(readJson(this.#noteFile)) : undefined;
  }

  writeNote(verity: string): void {
    mkdirSync(path.dirname(this.#noteFile), { recursive: true });
    writeFileSync(this.#noteFile, JSON.stringify({ depl_id: verity, finalization_locked: false }));
  }

  removeNote(): void {
    rmSync(this.#noteFile, { force: true });
  }

  origin(verity: string): z.infer<typeof Origin> {
    return Origin.parse(readJson(path.join(this.state(verity), `${verity}.origin`)));
  }

  /** Makes an image's tree, as a pull does. @returns the digest of its content. */
  pull({ layers }: Pick<MemoryImage, 'layers'>, diffIds: readonly string[]): string {
    const verity = createHash('sha512').update(JSON.stringify(diffIds)).digest('hex');
    const tree = this.imageTree(verity);
    const streams = path.join(this.sysroot, 'composefs/streams');
    mkdirSync(streams, { recursive: true });
    for (const diffId of diffIds) writeFileSync(path.join(streams, `oci-layer-${diffId}`), '');
    if (existsSync(tree)) return verity;
    writeTree(`${tree}.new`, layers);
    renameSync(`${tree}.new`, tree);
    return verity;
  }

  /** Makes what a deployment has of its own. */
  seed(verity: string, image: string): void {
    const state = this.state(verity);
    rmSync(state, { recursive: true, force: true });
    mkdirSync(state, { recursive: true });
    copy(path.join(this.imageTree(verity), 'etc'), path.join(state, 'etc'));
    const origin = { image, kernel: this.#kernelOf(verity) };
    writeFileSync(path.join(state, `${verity}.origin`), JSON.stringify(origin));
  }

  #kernelOf(verity: string): string {
    const hash = createHash('sha256');
    const modules = path.join(this.imageTree(verity), 'usr/lib/modules');
    for (const name of existsSync(modules) ? readdirSync(modules).sort() : []) hash.update(name);
    return hash.digest('hex');
  }

  /** bootc takes the first kernel that it finds in an image, and looks in /boot first. */
  hasUnifiedKernel(verity: string): boolean {
    return existsSync(path.join(this.imageTree(verity), 'boot/EFI/Linux'));
  }

  kargsOf(verity: string): Promise<readonly string[]> {
    return imageKernelArguments(this.imageTree(verity));
  }

  /** Deletes what no entry is of. */
  prune(isWhole: boolean): void {
    const all = [...(this.entries() ?? []), ...(this.entries('entries.staged') ?? [])];
    const kept = new Set(all.map(({ verity }) => verity));
    if (!isWhole) return;
    for (const place of ['state/deploy', 'composefs/images']) {
      for (const name of readdirSync(path.join(this.sysroot, place))) {
        if (!kept.has(name)) rmSync(path.join(this.sysroot, place, name), { recursive: true });
      }
    }
  }

  #service(): z.infer<typeof Service> {
    const file = path.join(this.dir, 'service.json');
    return existsSync(file) ? Service.parse(readJson(file)) : { isStarted: false, stops: [FINALIZE] };
  }

  #setService(change: Partial<z.infer<typeof Service>>): void {
    writeFileSync(path.join(this.dir, 'service.json'), JSON.stringify({ ...this.#service(), ...change }));
  }

  /** @returns whether it could be: systemd refuses a service without any command. */
  startFinalizeService(): boolean {
    if (this.#service().stops.length === 0) return false;
    this.#setService({ isStarted: true });
    return true;
  }

  daemonReload(): void {
    const directory = path.join(this.root, SETTING);
    const texts = existsSync(directory)
      ? readdirSync(directory).map((name) => readFileSync(path.join(directory, name), 'utf8'))
      : [];
    let stops = [FINALIZE];
    for (const [, command = ''] of texts.join('\n').matchAll(/^ExecStop=(.*)$/gm)) {
      stops = command === '' ? [] : [...stops, command];
    }
    this.#setService({ stops });
  }

  /** @returns whether systemd would have bootc finalize what is staged at shutdown. */
  get finalizesAtShutdown(): boolean {
    const { isStarted, stops } = this.#service();
    return isStarted && stops.includes(FINALIZE);
  }

  /** Boots the bootloader's first entry: /run is empty, and what was mounted is not any more. */
  boot(): void {
    this.unmount();
    const [first] = this.entries() ?? [];
    if (first === undefined) throw new Error(`${this.dir}: no entry to boot`);
    const image = this.imageTree(first.verity);
    for (const name of readdirSync(image)) {
      const place = path.join(this.root, name);
      if (name === 'sysroot') continue;
      rmSync(place, { recursive: true, force: true });
      if (name === 'etc') link(`sysroot/state/deploy/${first.verity}/etc`, place);
      else if (name === 'var') link('sysroot/state/os/default/var', place);
      else copy(path.join(image, name), place);
    }
    mkdirSync(path.join(this.root, 'proc'), { recursive: true });
    writeFileSync(
      path.join(this.root, 'proc/cmdline'),
      `initrd=\\EFI\\Linux\\initrd ${[...first.arguments, `composefs=?${first.verity}`].join(' ')}\n`,
    );
    const deployment = path.relative(this.sysroot, this.state(first.verity));
    const { bootCount } = this.#boot ?? { bootCount: 0 };
    const boot = { bootID: randomUUID(), deployment, bootCount: bootCount + 1 };
    writeFileSync(directoryNodeLayout(this.dir).machine, JSON.stringify(boot));
    rmSync(path.join(this.dir, 'service.json'), { force: true });
  }

  /** Ends the mounts of the machine, which are real. */
  unmount(): void {
    const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
    const places = lines.map((line) => line.split(' ')[4] ?? '');
    for (const place of places.toReversed()) {
      if (place.startsWith(`${this.dir}/`)) execFileSync('umount', [place]);
    }
  }

  /** @returns where the machine has what its commands name. */
  placeOf(name: string): string {
    return path.join(this.root, name);
  }
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** With owners, modes and links as they are. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['--archive', '--no-target-directory', from, to]);
}

function link(target: string, place: string): void {
  execFileSync('ln', ['--symbolic', '--no-target-directory', target, place]);
}

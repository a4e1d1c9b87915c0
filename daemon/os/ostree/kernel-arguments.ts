import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { splitKernelArguments } from './bootloader-entry.ts';

const DIRECTORY = 'usr/lib/bootc/kargs.d';

/** bootc documentation, "Kernel arguments": an unknown key is an error there too. */
const FragmentSchema = z.strictObject({
  kargs: z.array(z.string()),
  'match-architectures': z.array(z.string()).optional(),
});

/** A kargs.d fragment of an image that can't be read. */
export class KernelArgumentsError extends Error {
  override readonly name = 'KernelArgumentsError';
}

/**
 * @param file its name, for messages. @param architecture of the host, as Rust and bootc name it (`x86_64`, `aarch64`).
 * @returns the fragment's arguments; none when it is for other architectures. An element with white space is several.
 * @throws KernelArgumentsError
 */
export function parseKargsFragment(file: string, text: string, architecture: string): readonly string[] {
  let fragment: z.infer<typeof FragmentSchema>;
  try {
    fragment = FragmentSchema.parse(parse(text));
  } catch (cause) {
    throw new KernelArgumentsError(
      `${file}: expected kargs = ["…"] and perhaps match-architectures = ["…"]`,
      { cause },
    );
  }
  const architectures = fragment['match-architectures'];
  if (architectures !== undefined && !architectures.includes(architecture)) return [];
  return fragment.kargs.flatMap(splitKernelArguments);
}

/**
 * @param root a deployment's root.
 * @returns the kernel arguments of its image, fragments in the order of their names. @throws KernelArgumentsError
 */
export async function imageKernelArguments(root: string, architecture: string): Promise<readonly string[]> {
  const directory = path.join(root, DIRECTORY);
  const names = ((await readdir(directory).catch(ignoreMissing)) ?? [])
    .filter((name) => name.endsWith('.toml'))
    .sort();
  const lists: (readonly string[])[] = [];
  for (const name of names) {
    lists.push(parseKargsFragment(name, await readFile(path.join(directory, name), 'utf8'), architecture));
  }
  return lists.flat();
}

export interface KernelArgumentChange {
  /** What the host runs with. */
  readonly booted: readonly string[];
  readonly bootedImage: readonly string[];
  readonly stagedImage: readonly string[];
  readonly extra: { readonly remove: readonly string[]; readonly add: readonly string[] };
}

/**
 * The next boot's kernel arguments: the host's own (root device, console: whatever neither image nor Shale brought) stay
 * in place, the booted image's go, the staged image's and the extra ones follow.
 */
export function nextKernelArguments({
  booted,
  bootedImage,
  stagedImage,
  extra,
}: KernelArgumentChange): readonly string[] {
  const own = without(booted, [...bootedImage, ...extra.remove]);
  return [...own, ...stagedImage, ...extra.add];
}

/** Takes away one occurrence for each, the last one: what was appended goes before what the host had. */
function without(list: readonly string[], remove: readonly string[]): readonly string[] {
  const rest = [...list];
  for (const argument of remove) {
    const index = rest.lastIndexOf(argument);
    if (index >= 0) rest.splice(index, 1);
  }
  return rest;
}

/** @returns the host's architecture as kargs.d names it. @param arch as Node names it (`process.arch`). */
export function kargsArchitecture(arch: string): string {
  const names: Readonly<Record<string, string>> = {
    x64: 'x86_64',
    arm64: 'aarch64',
    ppc64: 'powerpc64',
    s390x: 's390x',
    riscv64: 'riscv64',
  };
  return names[arch] ?? arch;
}

import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import type { DigestedPullspec } from '../../../api/references.ts';
import { sameList } from '../../../machineconfig/diff.ts';
import { bootEntryFault, splitKernelArguments } from '../../../machineconfig/kernel-arguments.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { readRecord, writeRecord } from '../../records/durable-json.ts';
import type { StageOptions } from '../backend.ts';
import { OSTREE_ARGUMENT } from './deployments.ts';

const DIRECTORY = 'usr/lib/bootc/kargs.d';

/** bootc documentation, "Kernel arguments": an unknown key is an error there too. */
const FragmentSchema = z.strictObject({
  kargs: z.array(z.string()),
  'match-architectures': z.array(z.string()).optional(),
});

/**
 * @param file its name, for messages. @param architecture of the host, as Rust and bootc name it (`x86_64`, `aarch64`).
 * @returns the fragment's arguments; none when it is for other architectures. An element with white space is several.
 * @throws Error for anything else.
 */
export function parseKargsFragment(file: string, text: string, architecture: string): readonly string[] {
  let fragment: z.infer<typeof FragmentSchema>;
  try {
    fragment = FragmentSchema.parse(parse(text));
  } catch (cause) {
    throw new Error(`${file}: expected kargs = ["…"] and perhaps match-architectures = ["…"]`, { cause });
  }
  const architectures = fragment['match-architectures'];
  if (architectures !== undefined && !architectures.includes(architecture)) return [];
  return splitKernelArguments(fragment.kargs);
}

/**
 * @param root a deployment's root. @param architecture of the host, as Rust and bootc name it.
 * @returns the kernel arguments of its image, fragments in the order of their names. @throws Error for a wrong one.
 */
export async function imageKernelArguments(
  root: string,
  architecture = kargsArchitecture(process.arch),
): Promise<readonly string[]> {
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

interface KernelArgumentChange {
  /** What the host runs with. */
  readonly booted: readonly string[];
  readonly bootedImage: readonly string[];
  readonly stagedImage: readonly string[];
  readonly extra: { readonly remove: readonly string[]; readonly add: readonly string[] };
}

/**
 * The next boot's kernel arguments: the host's own (root device, console: whatever neither image nor Shale brought)
 * stay in place, the booted image's go, the staged image's and the extra ones follow.
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

/**
 * @param text of /proc/cmdline.
 * @returns the arguments of a kernel that was started from a bootloader entry of ostree's; undefined for another, such
 *   as that of a machine on which the node is a container.
 */
export function argumentsOfCommandLine(text: string | undefined): readonly string[] | undefined {
  const all = splitKernelArguments([text ?? '']);
  return all.some((argument) => argument.startsWith(OSTREE_ARGUMENT)) ? all : undefined;
}

const Notes = z.object({
  version: z.literal(1),
  deployments: z.array(
    z.object({
      image: z.string(),
      /** All of them. */
      kernelArguments: z.array(z.string()),
      /** Those among them that are neither the image's nor the host's own. */
      extra: z.array(z.string()),
    }),
  ),
});

/** More than a host has deployments; what was noted of older ones is nobody's. */
const MOST_NOTES = 16;

/** A deployment as far as its kernel arguments distinguish it from others. */
interface ArgumentsOfDeployment {
  readonly image?: DigestedPullspec | undefined;
  readonly kernelArguments: readonly string[];
}

interface StagedArguments {
  readonly booted: ArgumentsOfDeployment & { readonly directory: string };
  /** The arguments of the image that is staged. */
  readonly stagedImage: readonly string[];
  readonly extra: StageOptions['extraKernelArguments'];
}

/**
 * @param stateDirectory where the records of images lie.
 * @returns the kernel arguments of a deployment to be staged. @throws RecordError or an Error
 */
export async function argumentsToStage(
  stateDirectory: string,
  { booted, stagedImage, extra }: StagedArguments,
): Promise<readonly string[]> {
  const { add, remove } = extra;
  const bootedImage = await imageKernelArguments(booted.directory);
  if (!sameList(bootedImage, stagedImage)) refuseBrokenEntry(stagedImage);
  return nextKernelArguments({
    booted: booted.kernelArguments,
    bootedImage,
    stagedImage,
    extra: { remove: (await extraArgumentsOf(stateDirectory, booted)) ?? remove, add },
  });
}

/** An image that a container engine built, or a base, may have fragments that nobody validated. */
function refuseBrokenEntry(stagedImage: readonly string[]): void {
  const fault = bootEntryFault(stagedImage.join(' '));
  if (fault === undefined) return;
  throw new Error(`the image's ${DIRECTORY}: ${fault.reason}; expected ${fault.expected}`);
}

/**
 * Notes which of a deployment's kernel arguments Shale adds. Before it is made: whatever boots it, and whenever, what
 * the host had before can then be distinguished from what an update has brought.
 *
 * @param stateDirectory where the records of images lie.
 */
export async function noteExtraArguments(
  stateDirectory: string,
  { image, kernelArguments }: ArgumentsOfDeployment & { readonly image: DigestedPullspec },
  extra: readonly string[],
): Promise<void> {
  const notes = await readNotes(stateDirectory);
  const others = notes.filter(
    (note) => note.image !== image || !sameList(note.kernelArguments, kernelArguments),
  );
  const deployments = [{ image, kernelArguments, extra }, ...others].slice(0, MOST_NOTES);
  await writeRecord(fileIn(stateDirectory), { version: 1, deployments });
}

/**
 * @param stateDirectory where the records of images lie.
 * @returns those of a deployment's kernel arguments that Shale has added; undefined where that was not noted.
 * @throws RecordError
 */
export async function extraArgumentsOf(
  stateDirectory: string,
  { image, kernelArguments }: ArgumentsOfDeployment,
): Promise<readonly string[] | undefined> {
  const notes = await readNotes(stateDirectory);
  return notes.find((note) => note.image === image && sameList(note.kernelArguments, kernelArguments))?.extra;
}

async function readNotes(stateDirectory: string) {
  return (await readRecord(fileIn(stateDirectory), Notes))?.deployments ?? [];
}

function fileIn(stateDirectory: string): string {
  return path.join(stateDirectory, 'kernel-arguments.json');
}

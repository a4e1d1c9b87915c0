import { nodePaths } from '../../../api/names.ts';
import { shortList } from '../../../api/plural.ts';
import { shellWords } from '../../os/os-command.ts';
import type { OsTool } from '../../os/os-tool.ts';

/** What a node's present boot says of its kernel arguments. */
export interface BootedArguments {
  /** Of the booted deployment's bootloader entry, without `ostree=`. */
  readonly entry: readonly string[];
  /** What the kernel was started with; undefined where that isn't known. */
  readonly running?: readonly string[] | undefined;
  /** Those of the entry that Shale added beyond the image's own; undefined where none were noted. */
  readonly added?: readonly string[] | undefined;
  /** Why it isn't known what Shale added, as a clause; undefined where nothing keeps that from being known. */
  readonly unreadable?: string | undefined;
}

/** A kernel argument that is not as a config wants it. */
export interface KernelArgumentDrift {
  readonly argument: string;
  readonly what: /** The config names it, and the node was booted without it. */
    | 'missing'
    /** The kernel has it, but its bootloader entry was changed since. */
    | 'notInEntry'
    /** The bootloader entry has it, but the kernel was started without it. */
    | 'notRunning'
    /** Shale added it, and the config doesn't name it. */
    | 'left';
}

/**
 * Compares a boot's kernel arguments with those that a config names. Order and repetition don't matter, and what
 * neither the config names nor Shale added is the host's or its admin's.
 *
 * @param named the config's. @returns what differs, in the order of the config's arguments; none when nothing does.
 */
export function kernelArgumentDrifts(
  named: readonly string[],
  { entry, running, added = [] }: BootedArguments,
): readonly KernelArgumentDrift[] {
  const inEntry = setOf(entry);
  const inKernel = running && setOf(running);
  const inConfig = setOf(named);
  const drifts: KernelArgumentDrift[] = [];
  for (const [plain, argument] of byPlainForm(named)) {
    const isRunning = PASSED_ON_AS_IT_IS.test(plain) ? inKernel?.has(plain) : undefined;
    if (!inEntry.has(plain)) drifts.push({ argument, what: isRunning === true ? 'notInEntry' : 'missing' });
    else if (isRunning === false) drifts.push({ argument, what: 'notRunning' });
  }
  for (const [plain, argument] of byPlainForm(added)) {
    if (inEntry.has(plain) && !inConfig.has(plain)) drifts.push({ argument, what: 'left' });
  }
  return drifts;
}

/**
 * Bootloaders expand variables and escape characters (GRUB: `$`, `\`, `'`), so what has others is looked for in the
 * bootloader entry only.
 */
const PASSED_ON_AS_IT_IS = /^[\w.,:;=/@%+ -]*$/;

/**
 * The kernel drops quotes, and bootloaders move them (`a="b c"` becomes `"a=b c"`); ostree writes `a=` as `a`.
 */
function plainForm(argument: string): string {
  return argument.replaceAll('"', '').replace(/^([^=]+)=$/, '$1');
}

function setOf(list: readonly string[]): ReadonlySet<string> {
  return new Set(list.map(plainForm));
}

/**
 * @param named arguments. @param entry of a bootloader.
 * @returns those that the entry has, in their order.
 */
export function argumentsInEntry(named: readonly string[], entry: readonly string[]): readonly string[] {
  const inEntry = setOf(entry);
  return named.filter((argument) => inEntry.has(plainForm(argument)));
}

/** @returns each argument once, as it is written first. */
function byPlainForm(list: readonly string[]): ReadonlyMap<string, string> {
  const byPlain = new Map<string, string>();
  for (const argument of list) {
    const plain = plainForm(argument);
    if (!byPlain.has(plain)) byPlain.set(plain, argument);
  }
  return byPlain;
}

/** What keeps the host's operating system, as far as kernel arguments are its business. */
type ArgumentTool = Pick<OsTool, 'name' | 'setsKernelArguments'>;

/** Longest list of arguments in a condition or an event. */
const NAMED_ARGUMENTS = 10;

const phrases: Readonly<Record<KernelArgumentDrift['what'], string>> = {
  missing: 'is missing',
  notInEntry: 'is no longer in the bootloader entry, so the next boot lacks it',
  notRunning: 'is in the bootloader entry, but the kernel was started without it',
  left: 'was added by Shale, but the config does not name it',
};

/**
 * @param drifts at least one. @param config its name. @param tool that keeps the host's operating system.
 * @returns for a condition: what differs, and what an admin can do about it.
 */
export function formatKernelArgumentDrifts(
  drifts: readonly KernelArgumentDrift[],
  config: string,
  tool: ArgumentTool,
): string {
  const named = drifts.map(({ argument, what }) => `${argument} ${phrases[what]}`);
  return [
    `Kernel arguments differ from ${config}: ${shortList(named, NAMED_ARGUMENTS, '; ')}`,
    ...remedies(drifts.slice(0, NAMED_ARGUMENTS), tool),
    `shale reboot alone sets them, too, as does an update that reboots the node; ${nodePaths.forceFile} does not`,
  ].join('. ');
}

function remedies(drifts: readonly KernelArgumentDrift[], tool: ArgumentTool): readonly string[] {
  const add = drifts.filter(({ what }) => what === 'missing' || what === 'notInEntry').map(argumentOf);
  const remove = drifts.filter(({ what }) => what === 'left').map(argumentOf);
  const edits = editsWith(tool)(add, remove);
  const isNextBootOnly = tool.name !== 'rpm-ostree' && drifts.every(({ what }) => what === 'notInEntry');
  return [...edits, ...(isNextBootOnly ? [] : ['Run shale reboot for the node'])];
}

function argumentOf({ argument }: KernelArgumentDrift): string {
  return argument;
}

function byRpmOstree(add: readonly string[], remove: readonly string[]): readonly string[] {
  const options = [
    ...add.map((argument) => `--append-if-missing=${argument}`),
    ...remove.map((argument) => `--delete-if-present=${argument}`),
  ];
  return options.length === 0 ? [] : [`Run ${shellWords(['rpm-ostree', 'kargs', ...options])} on the node`];
}

type EditArguments = (add: readonly string[], remove: readonly string[]) => readonly string[];

function editsWith({ name, setsKernelArguments = true }: ArgumentTool): EditArguments {
  if (!setsKernelArguments) return byHand;
  return name === 'rpm-ostree' ? byRpmOstree : byOstree;
}

/** Where bootc keeps deployments in composefs, nothing has a command, and the entry is where systemd-boot reads it. */
function byHand(add: readonly string[], remove: readonly string[]): readonly string[] {
  const place = "the booted deployment's options in loader/entries on the EFI system partition";
  return [
    ...(add.length === 0 ? [] : [`Add ${add.join(' ')} to ${place}`]),
    ...(remove.length === 0 ? [] : [`Remove ${remove.join(' ')} from ${place}`]),
  ];
}

/** bootc has no command for kernel arguments, and ostree none that removes one in place. */
function byOstree(add: readonly string[], remove: readonly string[]): readonly string[] {
  const options = add.map((argument) => `--append-if-missing=${argument}`);
  const command = shellWords(['ostree', 'admin', 'kargs', 'edit-in-place', ...options]);
  return [
    ...(add.length === 0 ? [] : [`Run ${command} on the node`]),
    ...(remove.length === 0
      ? []
      : [`Remove ${remove.join(' ')} from the booted deployment's options in /boot/loader/entries`]),
  ];
}

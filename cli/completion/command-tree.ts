import type { Command, Option } from 'commander';

/** A command as a shell completes it. */
export interface CommandNode {
  readonly name: string;
  readonly description: string;
  readonly options: readonly OptionNode[];
  readonly commands: readonly CommandNode[];
  /** Whether its arguments may be files. */
  readonly takesFiles: boolean;
  /** What its argument names; undefined when nothing in a cluster. */
  readonly takesNames: NameKind | undefined;
}

/** Objects of a cluster that a command line names. */
export const NAME_KINDS = ['pools', 'nodes', 'pools-and-nodes', 'tried-pools'] as const;
export type NameKind = (typeof NAME_KINDS)[number];

export interface OptionNode {
  /** As they are typed: `-o`, `--output`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** The kind of its value; undefined for a flag without a value. */
  readonly value: ValueKind | undefined;
}

export type ValueKind =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  /** Names that only the cluster knows. */
  | { readonly kind: 'names'; readonly of: NameKind }
  /** A value that can't be completed. */
  | { readonly kind: 'text' };

/** @returns the flags, arguments and subcommands of a command, as registered with commander. */
export function commandTree(command: Command): CommandNode {
  const help = command.createHelp();
  const takesNames = NAMES_OF_ARGUMENTS.get(command.registeredArguments[0]?.name() ?? '');
  return {
    name: command.name(),
    description: command.description(),
    options: help.visibleOptions(command).map(optionNode),
    // Without commander's own help command, which does the same as --help.
    commands: command.commands.map(commandTree),
    takesFiles: takesNames === undefined && command.registeredArguments.some(({ variadic }) => variadic),
    takesNames,
  };
}

/** By the name of the argument in the help, and of the flag. */
const NAMES_OF_ARGUMENTS: ReadonlyMap<string, NameKind> = new Map([
  ['pool', 'pools'],
  ['node', 'nodes'],
  ['pool|node', 'pools-and-nodes'],
  ['tried-pool', 'tried-pools'],
]);
const NAMES_OF_FLAGS: ReadonlyMap<string, NameKind> = new Map([
  ['--pool', 'pools'],
  ['--node', 'nodes'],
  ['--probe', 'nodes'],
]);

function optionNode(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: option.required || option.optional ? valueKind(option) : undefined,
  };
}

function valueKind({ argChoices, flags, long }: Option): ValueKind {
  const names = NAMES_OF_FLAGS.get(long ?? '');
  if (names !== undefined) return { kind: 'names', of: names };
  if (argChoices !== undefined) return { kind: 'choices', choices: argChoices };
  return /<(file|dir)/.test(flags) ? { kind: 'file' } : { kind: 'text' };
}

/** A command with its path, such as `/image/inspect`; '' for the program itself. */
export interface PlacedCommand {
  readonly path: string;
  readonly command: CommandNode;
}

/** @returns every command of the tree, each after the one it is below. */
export function placedCommands(command: CommandNode, path = ''): readonly PlacedCommand[] {
  return [
    { path, command },
    ...command.commands.flatMap((below) => placedCommands(below, `${path}/${below.name}`)),
  ];
}

/** The candidates at one position of a command line. */
interface Candidates {
  readonly words: readonly { readonly word: string; readonly description: string }[];
  /** Whether files are also candidates. */
  readonly files: boolean;
  /** Names in the cluster that are also candidates. */
  readonly names: NameKind | undefined;
}

/**
 * Completes a command line.
 *
 * @param words after the program's name; the last one is being typed ('' before its first character).
 */
export function candidatesFor(program: CommandNode, words: readonly string[]): Candidates {
  const typed = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const command = commandAt(program, before);
  const option = optionBefore(command, before.at(-1));
  const all = option === undefined ? wordsOf(command) : valuesOf(option);
  return {
    words: all.filter(({ word }) => word.startsWith(typed) && (option !== undefined || isAsked(word, typed))),
    files:
      option === undefined ? command.takesFiles && !typed.startsWith('-') : option.value?.kind === 'file',
    names: namesAt(command, option, typed),
  };
}

function namesAt(command: CommandNode, option: OptionNode | undefined, typed: string): NameKind | undefined {
  if (option === undefined) return typed.startsWith('-') ? undefined : command.takesNames;
  return option.value?.kind === 'names' ? option.value.of : undefined;
}

/** Flags are candidates once a dash is typed, or when a command has no other candidates. */
function isAsked(word: string, typed: string): boolean {
  return typed.startsWith('-') || !word.startsWith('-');
}

function commandAt(program: CommandNode, words: readonly string[]): CommandNode {
  const placed = new Map(placedCommands(program).map(({ path, command }) => [path, command]));
  const path = words.reduce((at, word) => (placed.has(`${at}/${word}`) ? `${at}/${word}` : at), '');
  return placed.get(path) ?? program;
}

function optionBefore({ options }: CommandNode, word: string | undefined): OptionNode | undefined {
  return options.find(
    ({ flags, value }) => value !== undefined && word !== undefined && flags.includes(word),
  );
}

function wordsOf({ commands, options }: CommandNode): Candidates['words'] {
  return [
    ...commands.map(({ name, description }) => ({ word: name, description })),
    ...options.flatMap(({ flags, description }) => flags.map((word) => ({ word, description }))),
  ];
}

function valuesOf({ value }: OptionNode): Candidates['words'] {
  return value?.kind === 'choices' ? value.choices.map((word) => ({ word, description: '' })) : [];
}

/** ShellCompDirectiveNoFileComp of cobra, whose protocol kubectl uses for plugins (kubectl_complete-<name>). */
const NO_FILES = 4;
const FILES = 0;

/** @returns candidates in the format that kubectl expects of a plugin: a line for each, then the directive. */
export function forKubectl({ words, files }: Pick<Candidates, 'words' | 'files'>): string {
  const lines = words.map(({ word, description }) => (description === '' ? word : `${word}\t${description}`));
  return [...lines, `:${files ? FILES : NO_FILES}`].join('\n');
}

import type { Command, Option } from 'commander';

/** A command as a shell completes it. */
export interface CommandNode {
  readonly name: string;
  readonly description: string;
  readonly options: readonly OptionNode[];
  readonly commands: readonly CommandNode[];
  /** Whether what stands after it may be files. */
  readonly takesFiles: boolean;
}

export interface OptionNode {
  /** As they are typed: `-o`, `--output`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** What may stand after it; undefined for a flag without a value. */
  readonly value: ValueKind | undefined;
}

export type ValueKind =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  /** Nothing that a shell could know. */
  | { readonly kind: 'text' };

/** @returns what commander knows of a command, and of those below it. */
export function commandTree(command: Command): CommandNode {
  const help = command.createHelp();
  return {
    name: command.name(),
    description: command.description(),
    options: help.visibleOptions(command).map(optionNode),
    // commander's own help command completes nothing that --help does not tell.
    commands: command.commands.map(commandTree),
    takesFiles: command.registeredArguments.some(({ variadic }) => variadic),
  };
}

function optionNode(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: option.required || option.optional ? valueKind(option) : undefined,
  };
}

function valueKind({ argChoices, flags }: Option): ValueKind {
  if (argChoices !== undefined) return { kind: 'choices', choices: argChoices };
  return /<(file|dir)/.test(flags) ? { kind: 'file' } : { kind: 'text' };
}

/** A command with the words that lead to it, `/` between and before them; '' for the program itself. */
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

/** What may stand in a place of a command line. */
interface Candidates {
  readonly words: readonly { readonly word: string; readonly description: string }[];
  /** Files may stand there, too. */
  readonly files: boolean;
}

/**
 * Completes a command line.
 *
 * @param words those after the program's name, the last one being typed ('' where none is begun).
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
  };
}

/** The words of a command, its flags once a dash is typed or nothing else could be. */
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

/** ShellCompDirective of cobra, whose protocol kubectl speaks to plugins (kubectl, "plugins": kubectl_complete-<name>). */
const NO_FILES = 4;
const FILES = 0;

/** @returns candidates as kubectl reads them of a plugin: a word and its description in a line, then the directive. */
export function forKubectl({ words, files }: Candidates): string {
  const lines = words.map(({ word, description }) => (description === '' ? word : `${word}\t${description}`));
  return [...lines, `:${files ? FILES : NO_FILES}`].join('\n');
}

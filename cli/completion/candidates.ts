import { type CommandNode, type OptionNode, placedCommands } from './command-tree.ts';

/** What may stand in a place of a command line. */
export interface Candidates {
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

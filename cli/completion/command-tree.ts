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

import type { Argument, Command, Option } from 'commander';
import { checkoutProgram } from '../../workshop/sandbox/checkout-commands.ts';
import { code, page, table } from './markdown.ts';

/** @returns the page of every command with its flags, as `--help` has them. */
export async function commandsPage(): Promise<string> {
  return page('Commands and flags', 'cli/', [
    'The output of `--help` for each command. [The command line](cli.md) explains what the commands are for.',
    ...(await checkoutProgram()).commands.flatMap((command) => sections(command, 'shale')),
  ]);
}

function sections(command: Command, before: string): string[] {
  const help = command.createHelp();
  const words = `${before} ${command.name()}`;
  const own = command.commands.filter((below) => help.visibleCommands(command).includes(below));
  if (own.length > 0) return own.flatMap((below) => sections(below, words));
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  const usage = [words, ...command.registeredArguments.map(argument)];
  const parts = [`## ${words}`, command.description(), `Usage: \`${usage.join(' ')}\``];
  if (options.length > 0) parts.push(table(['flag', 'meaning'], options.map(flagRow)));
  return parts;
}

function argument(given: Argument): string {
  const word = `${given.name()}${given.variadic ? '...' : ''}`;
  return given.required ? `<${word}>` : `[${word}]`;
}

function flagRow(option: Option): string[] {
  const { flags, description, argChoices, envVar, mandatory } = option;
  const fallback = defaultOf(option);
  const more = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.map(code).join(', ')}`]),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(envVar === undefined ? [] : [`or by the variable \`${envVar}\``]),
    ...(mandatory ? ['has to be given'] : []),
  ];
  return [code(flags), [description, ...more].join('; ')];
}

function defaultOf({ defaultValue, defaultValueDescription }: Option): string | undefined {
  if (defaultValueDescription !== undefined) return defaultValueDescription;
  if (defaultValue === undefined || defaultValue === false || defaultValue === '') return undefined;
  if (Array.isArray(defaultValue) && defaultValue.length === 0) return undefined;
  return code(String(defaultValue));
}

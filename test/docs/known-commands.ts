import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Command, CommanderError } from 'commander';
import { errorMessage } from '../../api/error-message.ts';
import { checkoutProgram } from '../../workshop/sandbox/checkout-commands.ts';
import { ROOT } from './pages.ts';
import type { SimpleCommand } from './shell-words.ts';

/**
 * Holds a command that is not run against what the program takes: shale's own tree of commands, kubectl's help, make's
 * targets, paths of the project.
 *
 * @param isWhole whether it has all that it needs, and is not only spoken of.
 * @returns what is wrong with it.
 */
export function problemsOfCommand(
  words: SimpleCommand,
  { isWhole }: { readonly isWhole: boolean } = { isWhole: true },
): string[] {
  const [name = '', ...args] = words;
  const own = /^(?:(?:bin|\.)\/)?(?:kubectl-)?shale$/.test(name) ? args : undefined;
  if (own !== undefined || (name === 'kubectl' && args[0] === 'shale')) {
    return [...problemsOfShale(own ?? args.slice(1), isWhole), ...missingPaths(args)];
  }
  if (name === 'kubectl' && args[0] === 'krew') return problemsOfForeign(words);
  if (name === 'kubectl') return [...problemsOfKubectl(args), ...missingPaths(args)];
  if (name === 'make') return problemsOfMake(args);
  return problemsOfForeign(words);
}

const program = await checkoutProgram();

/** @returns the command that words name, and the words after its name. */
function commandOf(
  parent: Command,
  words: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } {
  const below = parent.commands.find((each) => each.name() === words[0]);
  return below === undefined ? { command: parent, rest: words } : commandOf(below, words.slice(1));
}

/** A command may have commands below it and do something itself, such as `shale try -f FILE`. */
function isGroup({ commands, options }: Command, [word = '']: readonly string[]): boolean {
  const asksForHelp = word === '--help' || word === '--version';
  return (
    commands.length > 0 &&
    (asksForHelp || !options.some(({ short, long }) => word === short || word === long))
  );
}

function problemsOfShale(args: readonly string[], isWhole: boolean): string[] {
  const { command, rest } = commandOf(program, args);
  if (isGroup(command, rest)) {
    const isSpokenOf = rest.length === 0 && !isWhole;
    const asksForHelp = rest.length > 0 && rest.every((word) => word === '--help' || word === '--version');
    return isSpokenOf || asksForHelp ? [] : [`shale has no command ${args.join(' ')}`];
  }
  try {
    const { operands, unknown } = command
      .configureOutput({ writeErr: () => undefined })
      .parseOptions([...rest]);
    const flags = unknown.filter((word) => word.startsWith('-') && word !== '--help');
    const given = operands.length + unknown.filter((word) => !word.startsWith('-')).length;
    const least = command.registeredArguments.filter(({ required }) => required).length;
    const most = command.registeredArguments.some(({ variadic }) => variadic)
      ? Number.POSITIVE_INFINITY
      : command.registeredArguments.length;
    return [
      ...flags.map((flag) => `shale ${command.name()} has no flag ${flag}`),
      ...(isWhole && given < least ? [`shale ${command.name()} wants ${least} arguments`] : []),
      ...(given > most ? [`shale ${command.name()} takes ${most} arguments, not ${given}`] : []),
    ];
  } catch (error) {
    // Running text may name a flag without a value for it.
    const isNamed = error instanceof CommanderError && error.code === 'commander.optionMissingArgument';
    if (isNamed && !isWhole) return [];
    return [errorMessage(error)];
  }
}

const helps = new Map<string, string | undefined>();

/** @returns what kubectl says of a command; undefined where it has none of that name. */
function kubectlHelp(...command: readonly string[]): string | undefined {
  const key = command.join(' ');
  if (!helps.has(key)) {
    try {
      const args = key === 'options' ? ['options'] : [...command, '--help'];
      helps.set(
        key,
        execFileSync('kubectl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
      );
    } catch {
      helps.set(key, undefined);
    }
  }
  return helps.get(key);
}

/** Of flags that may stand before the verb, those with a value. */
const GLOBAL_WITH_VALUE: readonly string[] = ['-n', '--namespace', '--context', '--kubeconfig'];

function problemsOfKubectl(args: readonly string[]): string[] {
  let at = 0;
  while (args[at]?.startsWith('-') === true) {
    at += GLOBAL_WITH_VALUE.includes(args[at] ?? '') ? 2 : 1;
  }
  const verb = args[at] ?? '';
  const help = kubectlHelp(verb);
  if (verb === '' || help === undefined) return [`kubectl has no command ${verb}`];
  const below = [args.slice(at, at + 2), args.slice(at, at + 3)].map((words) => kubectlHelp(...words) ?? '');
  const known = [help, ...below, kubectlHelp('options') ?? ''].join('\n');
  return args
    .filter((word) => word.startsWith('--'))
    .map((word) => word.split('=')[0] ?? word)
    .filter((flag) => !new RegExp(`${flag}[=\\s:,']`).test(known))
    .map((flag) => `kubectl ${verb} has no flag ${flag}`);
}

/** Flags of programs that no test runs, as their own documentation has them. */
const FOREIGN: readonly (readonly [command: string, flags: readonly string[]])[] = [
  ['helm show crds', []],
  ['helm install', ['--namespace', '--create-namespace', '--set', '--version']],
  ['kubectl krew install', ['--manifest', '--archive']],
  ['cosign verify', ['--key', '--insecure-ignore-tlog']],
  ['cosign verify-attestation', ['--key', '--insecure-ignore-tlog', '--type']],
];

function problemsOfForeign(words: SimpleCommand): string[] {
  const [name = '', verb = ''] = words;
  if (!FOREIGN.some(([command]) => command.startsWith(`${name} `))) return [];
  const line = `${words.join(' ')} `;
  const [command, known] = FOREIGN.find(([each]) => line.startsWith(`${each} `)) ?? [];
  if (known === undefined) return [`${name} ${verb} is not known here`];
  return words
    .filter((word) => word.startsWith('--') && !known.includes(word.split('=')[0] ?? word))
    .map((flag) => `${command} has no flag ${flag}`);
}

function problemsOfMake(args: readonly string[]): string[] {
  const makefile = readFileSync(path.join(ROOT, 'Makefile'), 'utf8');
  return args
    .filter((word) => /^[a-z]/.test(word))
    .filter((target) => !new RegExp(`^${target}:`, 'm').test(makefile))
    .map((target) => `make has no target ${target}`);
}

/** What `make chart` makes is not in a checkout. */
const MADE = /^charts\/dist\//;

function missingPaths(args: readonly string[]): string[] {
  return args
    .filter((word) => /^(manifests|examples|docs|charts)(\/|$)/.test(word) && !MADE.test(word))
    .filter((word) => !existsSync(path.join(ROOT, word)))
    .map((word) => `${word} is not there`);
}

import { type CommandNode, type OptionNode, type PlacedCommand, placedCommands } from './command-tree.ts';
import { quoted, shellWords } from './shell-text.ts';

/** @returns a script for fish's completions directory. */
export function fishCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  const paths = placed.filter(({ path }) => path !== '').map(({ path }) => path);
  return `# fish completion of shale; made by 'shale completion fish'
function __shale_at
    set -l at ''
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- "$at/$word" ${paths.join(' ')}
            set at "$at/$word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c shale -f
${placed.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, command }: PlacedCommand): string[] {
  const at = `complete -c shale -n ${quoted(`__shale_at "${path}"`)}`;
  return [
    ...command.commands.map(({ name, description }) => `${at} -a ${name} -d ${quoted(description)}`),
    ...command.options.map(
      (option) => `${at} ${flagsOf(option)}${argumentOf(option)} -d ${quoted(option.description)}`,
    ),
    ...(command.takesFiles ? [`${at} -F`] : []),
  ];
}

function flagsOf({ flags }: OptionNode): string {
  return flags
    .map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
    .join(' ');
}

function argumentOf({ value }: OptionNode): string {
  switch (value?.kind) {
    case 'choices':
      return ` -x -a ${shellWords(value.choices)}`;
    case 'file':
      return ' -r -F';
    case 'text':
      return ' -x';
    case undefined:
      return '';
  }
}

import {
  type CommandNode,
  type OptionNode,
  type PlacedCommand,
  placedCommands,
  type ValueKind,
} from './command-tree.ts';

/** @returns a script for `source` that completes shale and kubectl-shale. */
export function bashCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  return `# bash completion of shale; made by 'shale completion bash'
_shale_names() {
  shale completion names "$1" -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null
}
_shale() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at='' word words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$at/$word" in
      ${pathsOf(placed).join('|')}) at="$at/$word" ;;
    esac
  done
  case "$at:$prev" in
${placed.flatMap((command) => valueCases(command, completeValueInBash)).join('\n')}
  esac
  case "$at" in
${placed.map(wordsCaseInBash).join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o bashdefault -o default -F _shale shale kubectl-shale
`;
}

/** @returns the paths of the commands below the program. */
function pathsOf(placed: readonly PlacedCommand[]): readonly string[] {
  return placed.flatMap(({ path }) => (path === '' ? [] : [path]));
}

function completeValueInBash(value: ValueKind): string {
  switch (value.kind) {
    case 'choices':
      return `mapfile -t COMPREPLY < <(compgen -W ${shellWords(value.choices)} -- "$cur"); return`;
    case 'file':
      return `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return`;
    case 'names':
      return `compopt +o default +o bashdefault; mapfile -t COMPREPLY < <(compgen -W "$(_shale_names ${value.of})" -- "$cur"); return`;
    case 'text':
      return 'compopt +o default +o bashdefault; return';
  }
}

function wordsCaseInBash({ path, command }: PlacedCommand): string {
  const flags = command.options.flatMap((option) => option.flags);
  const names = command.commands.map(({ name }) => name);
  const dashed = `    '${path}') if [[ $cur == -* ]]; then words=${shellWords(flags)}`;
  if (names.length > 0) return `${dashed}; else words=${shellWords(names)}; fi ;;`;
  if (command.takesNames === undefined) return `${dashed}; fi ;;`;
  return `${dashed}; else compopt +o default +o bashdefault; words=$(_shale_names ${command.takesNames}); fi ;;`;
}

/** @returns a function for zsh's fpath (as `_shale`), or for `source`. */
export function zshCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  return `#compdef shale kubectl-shale
# zsh completion of shale; made by 'shale completion zsh'
_shale_names() {
  local -a found
  found=(\${(f)"$(shale completion names "$1" -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd -- $found
}
_shale() {
  local at='' word i
  local -a known
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case "$at/$word" in
      ${pathsOf(placed).join('|')}) at="$at/$word" ;;
    esac
  done
  case "$at:\${words[CURRENT-1]}" in
${placed.flatMap((command) => valueCases(command, completeValueInZsh)).join('\n')}
  esac
  case "$at" in
${placed.map(wordsCaseInZsh).join('\n')}
  esac
}
if [ "\${funcstack[1]}" = "_shale" ]; then
  _shale "$@"
else
  compdef _shale shale kubectl-shale
fi
`;
}

function completeValueInZsh(value: ValueKind): string {
  switch (value.kind) {
    case 'choices':
      return `compadd -- ${value.choices.map(quoted).join(' ')}; return`;
    case 'file':
      return '_files; return';
    case 'names':
      return `_shale_names ${value.of}; return`;
    case 'text':
      return 'return';
  }
}

function wordsCaseInZsh({ path, command }: PlacedCommand): string {
  const options = command.options.flatMap(({ flags, description }) =>
    flags.map((flag) => entry(flag, description)),
  );
  const commands = command.commands.map(({ name, description }) => entry(name, description));
  const flags = `if [[ \${words[CURRENT]} == -* ]]; then known=(${options.join(' ')}); _describe -o option known`;
  const rest =
    commands.length > 0
      ? `known=(${commands.join(' ')}); _describe command known`
      : command.takesNames !== undefined
        ? `_shale_names ${command.takesNames}`
        : command.takesFiles
          ? '_files'
          : 'return';
  return `    '${path}') ${flags}; else ${rest}; fi ;;`;
}

/** _describe expects a colon between a word and its description. */
function entry(word: string, description: string): string {
  return quoted(`${word}:${description.replaceAll(':', ' -')}`);
}

/** @returns a script for fish's completions directory. */
export function fishCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  return `# fish completion of shale; made by 'shale completion fish'
function __shale_names
    set -l words (commandline -opc)
    shale completion names $argv[1] -- $words[2..-1] 2>/dev/null
end
function __shale_at
    set -l at ''
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- "$at/$word" ${pathsOf(placed).join(' ')}
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
    ...(command.takesNames === undefined
      ? []
      : [`${at} -a ${quoted(`(__shale_names ${command.takesNames})`)}`]),
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
    case 'names':
      return ` -x -a ${quoted(`(__shale_names ${value.of})`)}`;
    case 'text':
      return ' -x';
    case undefined:
      return '';
  }
}

/** @returns the text quoted as one word of sh, bash, zsh or fish. */
function quoted(text: string): string {
  // Only fish supports \\' within single quotes, so an apostrophe is quoted separately for all.
  return `'${text.replaceAll('\\', '').replaceAll("'", "'\"'\"'")}'`;
}

/** @returns a list of words, quoted as one word. */
function shellWords(words: readonly string[]): string {
  return quoted(words.join(' '));
}

/** @returns the options that take a value. */
function valueFlags({ options }: CommandNode): readonly (OptionNode & { readonly value: ValueKind })[] {
  return options.flatMap((option) =>
    option.value === undefined ? [] : [{ ...option, value: option.value }],
  );
}

/**
 * @param completeValue returns the shell code that completes a value.
 * @returns the cases of `case "$at:$previous"` in bash and zsh, one for each option that takes a value.
 */
function valueCases({ path, command }: PlacedCommand, completeValue: (value: ValueKind) => string): string[] {
  return valueFlags(command).map(({ flags, value }) => {
    const pattern = flags.map((flag) => `'${path}:${flag}'`).join('|');
    return `    ${pattern}) ${completeValue(value)} ;;`;
  });
}

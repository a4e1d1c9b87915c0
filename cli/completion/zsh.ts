import { type CommandNode, type PlacedCommand, placedCommands, type ValueKind } from './command-tree.ts';
import { quoted, valueCases } from './shell-text.ts';

/** @returns a function for zsh's fpath (as `_shale`), or for `source`. */
export function zshCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  const paths = placed.filter(({ path }) => path !== '').map(({ path }) => path);
  return `#compdef shale kubectl-shale
# zsh completion of shale; made by 'shale completion zsh'
_shale() {
  local at='' word i
  local -a known
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case "$at/$word" in
      ${paths.join('|')}) at="$at/$word" ;;
    esac
  done
  case "$at:\${words[CURRENT-1]}" in
${placed.flatMap((command) => valueCases(command, completeValue)).join('\n')}
  esac
  case "$at" in
${placed.map(wordsCase).join('\n')}
  esac
}
if [ "\${funcstack[1]}" = "_shale" ]; then
  _shale "$@"
else
  compdef _shale shale kubectl-shale
fi
`;
}

function completeValue(value: ValueKind): string {
  switch (value.kind) {
    case 'choices':
      return `compadd -- ${value.choices.map(quoted).join(' ')}; return`;
    case 'file':
      return '_files; return';
    case 'text':
      return 'return';
  }
}

function wordsCase({ path, command }: PlacedCommand): string {
  const options = command.options.flatMap(({ flags, description }) =>
    flags.map((flag) => entry(flag, description)),
  );
  const commands = command.commands.map(({ name, description }) => entry(name, description));
  const flags = `if [[ \${words[CURRENT]} == -* ]]; then known=(${options.join(' ')}); _describe -o option known`;
  const rest =
    commands.length > 0
      ? `known=(${commands.join(' ')}); _describe command known`
      : command.takesFiles
        ? '_files'
        : 'return';
  return `    '${path}') ${flags}; else ${rest}; fi ;;`;
}

/** _describe parts a word from its description by a colon. */
function entry(word: string, description: string): string {
  return quoted(`${word}:${description.replaceAll(':', ' -')}`);
}

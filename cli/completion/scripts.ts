import { type CommandNode, type PlacedCommand, placedCommands, type ValueKind } from './command-tree.ts';
import { shellWords, valueCases } from './shell-text.ts';

/** @returns a script for `source`: completion of shale, and of kubectl-shale where it is called by that name. */
export function bashCompletion(program: CommandNode): string {
  const placed = placedCommands(program);
  return `# bash completion of shale; made by 'shale completion bash'
_shale() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at='' word words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$at/$word" in
      ${pathPattern(placed)}) at="$at/$word" ;;
    esac
  done
  case "$at:$prev" in
${placed.flatMap((command) => valueCases(command, completeValue)).join('\n')}
  esac
  case "$at" in
${placed.map(wordsCase).join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o bashdefault -o default -F _shale shale kubectl-shale
`;
}

function pathPattern(placed: readonly PlacedCommand[]): string {
  return placed
    .filter(({ path }) => path !== '')
    .map(({ path }) => path)
    .join('|');
}

function completeValue(value: ValueKind): string {
  switch (value.kind) {
    case 'choices':
      return `mapfile -t COMPREPLY < <(compgen -W ${shellWords(value.choices)} -- "$cur"); return`;
    case 'file':
      return `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return`;
    case 'text':
      return 'compopt +o default +o bashdefault; return';
  }
}

function wordsCase({ path, command }: PlacedCommand): string {
  const flags = command.options.flatMap((option) => option.flags);
  const names = command.commands.map(({ name }) => name);
  const dashed = `    '${path}') if [[ $cur == -* ]]; then words=${shellWords(flags)}`;
  return names.length === 0 ? `${dashed}; fi ;;` : `${dashed}; else words=${shellWords(names)}; fi ;;`;
}

import { Argument, Command } from 'commander';
import { print } from '../command-line/output.ts';
import {
  type CommandNode,
  candidatesFor,
  commandTree,
  forKubectl,
  NAME_KINDS,
  type NameKind,
} from './command-tree.ts';
import { namesOrNone } from './names.ts';
import { bashCompletion, fishCompletion, zshCompletion } from './scripts.ts';

const SHELLS: Readonly<Record<string, (program: CommandNode) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

const HELP = `
To load completions in every new shell:
  bash  shale completion bash > ~/.local/share/bash-completion/completions/shale
  zsh   shale completion zsh > "\${fpath[1]}/_shale"
  fish  shale completion fish > ~/.config/fish/completions/shale.fish

kubectl completes 'kubectl shale' if bin/kubectl_complete-shale is on the PATH.`;

/**
 * `shale completion`: the completion scripts for shells.
 *
 * @param program loads the complete command line.
 */
export function completionCommand(program: () => Promise<Command>): Command {
  const command = new Command('completion').addHelpText('after', HELP);
  for (const [shell, script] of Object.entries(SHELLS)) {
    command.addCommand(
      new Command(shell)
        .description(`Print the completion script for ${shell}.`)
        .action(async () => print(script(commandTree(await program())))),
    );
  }
  const kubectl = new Command('kubectl')
    .description("Complete a command line, using kubectl's protocol for plugins.")
    .addArgument(new Argument('[words...]', 'words after `kubectl shale`; the last one is being typed'))
    .action(async (words: readonly string[]) => {
      const { names, ...known } = candidatesFor(commandTree(await program()), words);
      const candidates = names === undefined ? [] : await namesOrNone(names, words);
      const typed = words.at(-1) ?? '';
      const own = candidates
        .filter((name) => name.startsWith(typed))
        .map((word) => ({ word, description: '' }));
      print(forKubectl({ ...known, words: [...known.words, ...own] }));
    });
  const names = new Command('names')
    .description('Print names of a cluster, for the completion scripts.')
    .addArgument(new Argument('<kind>', 'whose names').choices(NAME_KINDS))
    .addArgument(new Argument('[words...]', 'words of the command line, whose flags say which cluster'))
    .action(async (kind: NameKind, words: readonly string[]) => {
      for (const name of await namesOrNone(kind, words)) print(name);
    });
  return command.addCommand(kubectl, { hidden: true }).addCommand(names, { hidden: true });
}

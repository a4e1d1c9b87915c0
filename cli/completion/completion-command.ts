import { Argument, Command } from 'commander';
import { print } from '../command-line/output.ts';
import { type CommandNode, candidatesFor, commandTree, forKubectl } from './command-tree.ts';
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
      print(forKubectl(candidatesFor(commandTree(await program()), words)));
    });
  return command.addCommand(kubectl, { hidden: true });
}

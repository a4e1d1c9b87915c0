import type { Command } from 'commander';

/**
 * Adds a subcommand whose options and action are loaded when it is called.
 *
 * @param load returns the real command, which then parses the arguments after its name.
 */
export function addLazyCommand(
  parent: Command,
  name: string,
  description: string,
  load: () => Promise<Command>,
): void {
  parent
    .command(name)
    .description(description)
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .argument('[arguments...]')
    .action(async (given: string[]) => {
      const command = await load();
      command.name(`${parent.name()} ${name}`).exitOverride().showHelpAfterError();
      await command.parseAsync(given, { from: 'user' });
    });
}

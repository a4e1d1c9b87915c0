import { Command, CommanderError } from 'commander';
import { CommandError, exitCodes } from './exit-codes.ts';
import { addLazyCommand } from './lazy-command.ts';

/**
 * Builds shale's command line. Each subcommand's code is loaded only when it is called, so that the node daemon does not
 * carry the builder's libraries in its memory.
 */
function program(): Command {
  const shale = new Command('shale')
    .description('Operating-system images built on the Kubernetes cluster that runs them.')
    .showHelpAfterError('(shale --help lists what there is)')
    .exitOverride();
  addLazyCommand(shale, 'operator', 'Run the operator: pools, rollouts, the opt-in switch.', async () =>
    (await import('./operator.ts')).operatorCommand(),
  );
  addLazyCommand(shale, 'machine-os-builder', 'Run the Machine OS Builder.', async () =>
    (await import('../builder/command.ts')).builderCommand(),
  );
  addLazyCommand(shale, 'daemon', 'Run the node daemon.', async () =>
    (await import('../daemon/command.ts')).daemonCommand(),
  );
  addLazyCommand(shale, 'sandbox', 'A whole cluster on this machine, for trying out.', async () =>
    (await import('./sandbox.ts')).sandboxCommand(),
  );
  return shale;
}

try {
  await program().parseAsync(process.argv);
} catch (error) {
  process.exitCode = report(error);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // commander has printed its message already; help and version end here too, with exit code 0.
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  if (error instanceof CommandError) {
    process.stderr.write(`shale: ${error.message}\n`);
    return error.exitCode;
  }
  process.stderr.write(`shale: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.failed;
}

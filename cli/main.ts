import { Command, CommanderError } from 'commander';
import { SHALE_VERSION } from '../api/version.ts';
import { LeadershipLost } from '../cluster/leader-election.ts';
import { buildCommand } from './build-command.ts';
import { diffCommand } from './diff-command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { imageCommand } from './image/inspect-command.ts';
import { planCommand } from './plan-command.ts';
import { policiesCommand } from './policies-command.ts';
import { renderCommand } from './render-command.ts';
import { validateCommand } from './validate-command.ts';

/** Commands that are loaded only when they are called: a node's daemon need not carry what the sandbox is made of. */
const LAZY_COMMANDS: Readonly<
  Record<string, { readonly description: string; readonly load: () => Promise<Command> }>
> = {
  status: {
    description: 'Tell how far pools, builds and nodes are, and what they wait for.',
    load: async () => (await import('./status/status-command.ts')).statusCommand(),
  },
  history: {
    description: 'Tell what a pool was given to run, image by image, and what each changed.',
    load: async () => (await import('./history/history-command.ts')).historyCommand(),
  },
  explain: {
    description: 'Tell why a node did what it did: MachineConfig, path, policy, action, result.',
    load: async () => (await import('./explain/explain-command.ts')).explainCommand(),
  },
  enable: {
    description: 'Switch layering on: every pool gets an image, and its nodes move to it.',
    load: async () => (await import('./layering/switch-command.ts')).enableCommand(),
  },
  disable: {
    description: 'Switch layering off: nodes go back to the stock image, and what layering made is deleted.',
    load: async () => (await import('./layering/switch-command.ts')).disableCommand(),
  },
  rollback: {
    description: 'Take a pool back to what it ran before, and hold it there.',
    load: async () => (await import('./rollback/rollback-command.ts')).rollbackCommand(),
  },
  maintenance: {
    description: 'Take a node out of service and put it back, with the exclusive right to it.',
    load: async () => (await import('./maintenance/maintenance-command.ts')).maintenanceCommand(),
  },
  operator: {
    description: 'Render pools, roll changes out, and start and stop layering; runs in the cluster.',
    load: async () => (await import('./operator/command.ts')).operatorCommand(),
  },
  'machine-os-builder': {
    description: "Build the pools' images; runs in the cluster while layering is on.",
    load: async () => (await import('../builder/command.ts')).builderCommand(),
  },
  daemon: {
    description: 'Keep one node as its MachineConfigNode says; runs on every node.',
    load: async () => (await import('../daemon/command.ts')).daemonCommand(),
  },
  sandbox: {
    description: 'A whole cluster on this machine, for trying Shale out and for its tests.',
    load: async () => (await import('../sandbox/command.ts')).sandboxCommand(),
  },
};

/** @param name of the command that is called: only this one of the lazy commands is more than its description. */
async function lazyCommands(name: string | undefined): Promise<Command[]> {
  return Promise.all(
    Object.entries(LAZY_COMMANDS).map(async ([known, { description, load }]) =>
      (known === name ? await load() : new Command(known)).description(description),
    ),
  );
}

/** Builds shale's command line. */
async function program(argv: readonly string[]): Promise<Command> {
  const shale = new Command('shale')
    .description('Operating-system images built on the Kubernetes cluster that runs them.')
    .version(SHALE_VERSION, '--version', 'print the version')
    .showHelpAfterError('(shale --help lists what there is)');
  const commands = [
    planCommand(),
    diffCommand(),
    validateCommand(),
    renderCommand(),
    policiesCommand(),
    buildCommand(),
    imageCommand(),
    ...(await lazyCommands(argv[2])),
  ];
  for (const command of commands) shale.addCommand(command);
  // Errors of use end here, not in the middle of commander, so that every way out has its exit code.
  for (const command of [shale, ...commands, ...commands.flatMap(({ commands: own }) => own)]) {
    command.exitOverride();
  }
  return shale;
}

try {
  const shale = await program(process.argv);
  await shale.parseAsync(process.argv);
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
  if (error instanceof LeadershipLost) {
    process.stderr.write(`shale: ${error.message}\n`);
    return exitCodes.failed;
  }
  process.stderr.write(`shale: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.software;
}

import { Command, CommanderError, Help, Option } from 'commander';
import { SHALE_VERSION } from '../api/names.ts';
import { EgressProxyError, useEgressProxy } from '../cluster/egress-proxy.ts';
import { LeadershipLost } from '../cluster/leader-election.ts';
import { StartupError } from '../cluster/startup-error.ts';
import { argumentsOf } from './command-line/arguments.ts';
import { endWithReader } from './command-line/closed-pipe.ts';
import { CommandError, exitCodes } from './command-line/exit-codes.ts';
import { note, print } from './command-line/output.ts';

/** Each command is loaded only when it runs, so that a node daemon doesn't hold the code of the page in memory. */
export type Commands = Readonly<
  Record<
    string,
    {
      readonly description: string;
      /** @param whole loads the complete command line, for the command that prints completion scripts. */
      readonly load: (whole: () => Promise<Command>) => Promise<Command>;
    }
  >
>;

const OTHER_COMMANDS = 'Other commands:';

/** By the heading of the help below which they are. */
const COMMANDS: Readonly<Record<string, Commands>> = {
  'Changes and images:': {
    plan: {
      description: 'Predict what a change requires of the nodes of each pool, and explain why.',
      load: async () => (await import('./plan/plan-command.ts')).planCommand(),
    },
    diff: {
      description: 'Show how a change affects the files, units and kernel arguments of nodes.',
      load: async () => (await import('./diff/diff-command.ts')).diffCommand(),
    },
    validate: {
      description: 'Validate MachineConfigs and node disruption policies.',
      load: async () => (await import('./validate-command.ts')).validateCommand(),
    },
    render: {
      description: "Merge a pool's MachineConfigs into its rendered config.",
      load: async () => (await import('./render-command.ts')).renderCommand(),
    },
    policies: {
      description:
        'List the effective node disruption policies: the defaults and the overrides of the MachineConfiguration.',
      load: async () => (await import('./policies-command.ts')).policiesCommand(),
    },
    build: {
      description:
        "Build a pool's image from files, as one layer on the base image, and push it to a registry.",
      load: async () => (await import('./build-command.ts')).buildCommand(),
    },
    image: {
      description: 'Inspect and compare images in a registry.',
      load: async () => (await import('./image/inspect-command.ts')).imageCommand(),
    },
  },
  'Pools and nodes:': {
    status: {
      description: 'Show the progress of pools, builds and nodes, and what each is waiting for.',
      load: async () => (await import('./status-command.ts')).statusCommand(),
    },
    history: {
      description:
        'Show the images and rendered configs that a pool was assigned, and what each one changed.',
      load: async () => (await import('./history/history-command.ts')).historyCommand(),
    },
    explain: {
      description: "Explain a node's last and next update: MachineConfig, path, policy, action and result.",
      load: async () => (await import('./explain-command.ts')).explainCommand(),
    },
    rollback: {
      description: 'Roll a pool back to what it ran before, and hold it there.',
      load: async () => (await import('./history/rollback-command.ts')).rollbackCommand(),
    },
    try: {
      description: 'Apply MachineConfigs that are undone unless you confirm them in time.',
      load: async () => (await import('./try/try-command.ts')).tryCommand(),
    },
    repair: {
      description: 'Overwrite what was changed by hand on a node with what its config specifies.',
      load: async () => (await import('./repair-command.ts')).repairCommand(),
    },
    retry: {
      description: 'Retry the update that failed on nodes, once its cause is fixed.',
      load: async () => (await import('./retry-command.ts')).retryCommand(),
    },
    reboot: {
      description:
        'Reboot nodes as an update does: drained, within windows and maxUnavailable, and verified.',
      load: async () => (await import('./reboot-command.ts')).rebootNodesCommand(),
    },
    maintenance: {
      description: 'Take a node out of service for maintenance and return it, while holding its lease.',
      load: async () => (await import('./maintenance/maintenance-command.ts')).maintenanceCommand(),
    },
    node: {
      description: 'Prepare machines that become nodes.',
      load: async () => (await import('./node/node-command.ts')).nodeCommand(),
    },
    ui: {
      description:
        'Serve the live page on this machine, for your own browser and with your own permissions; read-only.',
      load: async () => (await import('./ui-command.ts')).uiCommand(),
    },
  },
  'Installation and layering:': {
    doctor: {
      description: "Check that a cluster is ready for Shale and explain how to fix what isn't.",
      load: async () => (await import('./doctor/doctor-command.ts')).doctorCommand(),
    },
    gather: {
      description: 'Collect what a bug report needs in one file, without secrets.',
      load: async () => (await import('./gather/gather-command.ts')).gatherCommand(),
    },
    version: {
      description: 'Show the versions of this command, the operator, the builder and the node daemons.',
      load: async () => (await import('./version/version-command.ts')).versionCommand(),
    },
    enable: {
      description: 'Enable layering: every pool gets an image, and its nodes switch to it.',
      load: async () => (await import('./layering/switch-command.ts')).enableCommand(),
    },
    disable: {
      description:
        'Disable layering: nodes return to the stock image, and everything that layering created is deleted.',
      load: async () => (await import('./layering/switch-command.ts')).disableCommand(),
    },
    uninstall: {
      description: 'Remove Shale from a cluster; nodes return to the stock image or stay as they are.',
      load: async () => (await import('./uninstall-command.ts')).uninstallCommand(),
    },
  },
  [OTHER_COMMANDS]: {
    completion: {
      description: 'Print a script that completes commands and flags in a shell.',
      load: async (whole) => (await import('./completion/completion-command.ts')).completionCommand(whole),
    },
  },
  'Processes that run in the cluster:': {
    operator: {
      description:
        'Run the operator: renders pools, rolls out changes, starts and stops layering; runs in the cluster.',
      load: async () => (await import('../operator/main.ts')).operatorCommand(),
    },
    'machine-os-builder': {
      description:
        'Run the Machine OS Builder: builds the images of the pools; runs in the cluster while layering is enabled.',
      load: async () => (await import('../builder/main.ts')).builderCommand(),
    },
    'engine-front': {
      description:
        "Serve a container engine's socket over TLS to clients with a certificate; runs in the pods of builds.",
      load: async () => (await import('../builder/engine/pod/engine-front.ts')).engineFrontCommand(),
    },
    daemon: {
      description:
        'Run the node daemon: keeps a node in the state that its MachineConfigNode specifies; runs on every node.',
      load: async () => (await import('../daemon/main.ts')).daemonCommand(),
    },
    page: {
      description: 'Run the live page: shows the rollout to browsers and only reads; runs in the cluster.',
      load: async () => (await import('../page/main.ts')).pageCommand(),
    },
    'capi-extension': {
      description:
        "Run Cluster API's update extension: answers its hooks and updates machines in place; runs in the management cluster.",
      load: async () => (await import('../capi/main.ts')).capiExtensionCommand(),
    },
    'registry-probe': {
      description:
        'Test the registries of the pools from a pod; shale doctor --probe runs it in the cluster.',
      load: async () => (await import('./doctor/probe/registry-probe-command.ts')).registryProbeCommand(),
    },
  },
};

/** @param isLoaded whether a command is more than its description. */
async function commandsFor(isLoaded: (name: string) => boolean, more: Commands): Promise<Command[]> {
  const groups = [...Object.entries(COMMANDS), [OTHER_COMMANDS, more] as const];
  const commands = groups.flatMap(([group, own]) =>
    Object.entries(own).map(async ([name, { description, load }]) =>
      (isLoaded(name) ? await load(() => program(() => true, more)) : new Command(name))
        .description(description)
        .helpGroup(group),
    ),
  );
  return Promise.all(commands);
}

/**
 * @param isLoaded whether a command is more than its description.
 * @param more commands beside Shale's own.
 * @returns shale's command line.
 */
export async function program(isLoaded: (name: string) => boolean, more: Commands = {}): Promise<Command> {
  const shale = new Command('shale')
    .description('Operating-system images built on the Kubernetes cluster that runs them.')
    .version(SHALE_VERSION, '--version', 'print the version')
    .showHelpAfterError('(run shale --help for a list of commands)')
    .commandsGroup(OTHER_COMMANDS)
    .helpCommand('help [command]', 'Show the help of a command.');
  const commands = await commandsFor(isLoaded, more);
  for (const command of commands) shale.addCommand(command);
  // commander would end the process at a usage error, with an exit code of its own.
  for (const command of [shale, ...commands, ...commands.flatMap(({ commands: own }) => own)]) {
    command.exitOverride();
    command.configureHelp({ optionDescription });
    command.configureOutput({ writeOut: print, writeErr: note, outputError });
  }
  return shale;
}

/** commander would begin its errors with `error:`; all others begin with the name of the program. */
function outputError(text: string, write: (text: string) => void): void {
  write(text.replace(/^error:/, 'shale:'));
}

/** commander would print an empty list or text as `default: []`; the descriptions say what happens without the flag. */
function optionDescription(option: Option): string {
  const isEmpty = Array.isArray(option.defaultValue) && option.defaultValue.length === 0;
  if (!isEmpty && option.defaultValue !== '') return new Help().optionDescription(option);
  const shown = new Option(option.flags, option.description);
  if (option.argChoices !== undefined) shown.choices(option.argChoices);
  if (option.defaultValueDescription !== undefined)
    shown.default(option.defaultValue, option.defaultValueDescription);
  return new Help().optionDescription(shown);
}

/**
 * Runs the command that this process was called with, and sets its exit code.
 *
 * @param more commands beside Shale's own.
 */
export async function runProgram(more: Commands = {}): Promise<void> {
  endWithReader();
  try {
    useEgressProxy(process.env);
    const known = [...Object.values(COMMANDS), more].flatMap(Object.keys);
    const args = argumentsOf(process.argv.slice(2), known);
    const shale = await program((name) => name === args[0], more);
    await shale.parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
    // The work of the former leader goes on, and may not: another process may lead now.
    if (error instanceof LeadershipLost) process.exit();
  }
}

function report(error: unknown): number {
  // commander has printed its message already; help and version end here too, with exit code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const exitCode = exitCodeOf(error);
  const { message = String(error), stack = message } = error instanceof Error ? error : {};
  note(`shale: ${exitCode === exitCodes.software ? stack : message}`);
  return exitCode;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof EgressProxyError) return exitCodes.usage;
  if (error instanceof StartupError)
    return error.kind === 'unavailable' ? exitCodes.unavailable : exitCodes.failed;
  return error instanceof LeadershipLost ? exitCodes.failed : exitCodes.software;
}

import { Command } from 'commander';
import { SHALE_VERSION } from '../api/version.ts';

/** Each is loaded only when it is called: a node's daemon need not carry what the page is made of. */
export type Commands = Readonly<
  Record<
    string,
    {
      readonly description: string;
      /** @param whole the program with all that can be typed, for a command that completes it. */
      readonly load: (whole: () => Promise<Command>) => Promise<Command>;
    }
  >
>;

const COMMANDS: Commands = {
  plan: {
    description: 'Say what a change asks of the nodes of each pool, and why.',
    load: async () => (await import('./plan/plan-command.ts')).planCommand(),
  },
  diff: {
    description: "Show what a change does to nodes' files, units and kernel arguments.",
    load: async () => (await import('./diff-command.ts')).diffCommand(),
  },
  validate: {
    description: 'Check MachineConfigs and disruption policies.',
    load: async () => (await import('./validate-command.ts')).validateCommand(),
  },
  render: {
    description: "Merge a pool's MachineConfigs into its rendered config.",
    load: async () => (await import('./render-command.ts')).renderCommand(),
  },
  policies: {
    description:
      'List the node disruption policies in force: the defaults and what a MachineConfiguration overrides.',
    load: async () => (await import('./policies-command.ts')).policiesCommand(),
  },
  build: {
    description: "Make a pool's image from files: one layer on the base image, pushed to a registry.",
    load: async () => (await import('./build-command.ts')).buildCommand(),
  },
  image: {
    description: 'Look at images in a registry.',
    load: async () => (await import('./image/inspect-command.ts')).imageCommand(),
  },
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
  doctor: {
    description: 'Look whether a cluster is fit for Shale, and say how to mend what is not.',
    load: async () => (await import('./doctor/doctor-command.ts')).doctorCommand(),
  },
  gather: {
    description: 'Put what a bug report needs into one file, without secrets.',
    load: async () => (await import('./gather/gather-command.ts')).gatherCommand(),
  },
  enable: {
    description: 'Switch layering on: every pool gets an image, and its nodes move to it.',
    load: async () => (await import('./layering/switch-command.ts')).enableCommand(),
  },
  disable: {
    description: 'Switch layering off: nodes go back to the stock image, and what layering made is deleted.',
    load: async () => (await import('./layering/switch-command.ts')).disableCommand(),
  },
  uninstall: {
    description: 'Take Shale out of a cluster, and leave its nodes on the stock image or as they are.',
    load: async () => (await import('./uninstall/uninstall-command.ts')).uninstallCommand(),
  },
  rollback: {
    description: 'Take a pool back to what it ran before, and hold it there.',
    load: async () => (await import('./rollback/rollback-command.ts')).rollbackCommand(),
  },
  maintenance: {
    description: 'Take a node out of service and put it back, with the exclusive right to it.',
    load: async () => (await import('./maintenance/maintenance-command.ts')).maintenanceCommand(),
  },
  completion: {
    description: 'Print what a shell needs to complete commands and flags.',
    load: async (whole) => (await import('./completion/completion-command.ts')).completionCommand(whole),
  },
  operator: {
    description: 'Render pools, roll changes out, and start and stop layering; runs in the cluster.',
    load: async () => (await import('../operator/main.ts')).operatorCommand(),
  },
  'machine-os-builder': {
    description: "Build the pools' images; runs in the cluster while layering is on.",
    load: async () => (await import('../builder/command.ts')).builderCommand(),
  },
  daemon: {
    description: 'Keep one node as its MachineConfigNode says; runs on every node.',
    load: async () => (await import('../daemon/main.ts')).daemonCommand(),
  },
  'registry-probe': {
    description: "Try pools' registries from a pod; shale doctor --probe runs it in the cluster.",
    load: async () => (await import('./doctor/probe/registry-probe-command.ts')).registryProbeCommand(),
  },
  ui: {
    description:
      'Serve the live page on this machine, for your own browser and with your own rights; it only reads.',
    load: async () => (await import('./ui-command.ts')).uiCommand(),
  },
};

/** @param isLoaded whether a command is more than its description. */
async function commandsFor(isLoaded: (name: string) => boolean, more: Commands): Promise<Command[]> {
  return Promise.all(
    Object.entries({ ...COMMANDS, ...more }).map(async ([name, { description, load }]) =>
      (isLoaded(name) ? await load(() => program(() => true, more)) : new Command(name)).description(
        description,
      ),
    ),
  );
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
    .showHelpAfterError('(shale --help lists what there is)');
  const commands = await commandsFor(isLoaded, more);
  for (const command of commands) shale.addCommand(command);
  // Errors of use end here, not in the middle of commander, so that every way out has its exit code.
  for (const command of [shale, ...commands, ...commands.flatMap(({ commands: own }) => own)]) {
    command.exitOverride();
  }
  return shale;
}

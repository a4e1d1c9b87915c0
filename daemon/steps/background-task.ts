import type { Command, OptionValues } from 'commander';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { StatusChannel, StepContext } from './step-context.ts';

/** The node's own MachineConfigNode, for work that maintains fields of its status. */
export interface BackgroundChannel extends StatusChannel {
  /** @param compute given the object as it is then; returns the status to write. @throws ApiError */
  update(
    compute: (object: MachineConfigNode, now: Date) => MachineConfigNodeStatus | undefined,
    signal: AbortSignal,
  ): Promise<void>;
}

/** Work on the node beside the steps of updates, which never wait for it. Ends when the signal is aborted. */
export type BackgroundTask = (
  context: StepContext & { readonly channel: BackgroundChannel },
) => Promise<void>;

/** Such work with the options that it has on the daemon's command line. */
export interface BackgroundCommand {
  addOptions(command: Command): void;
  /** @param flags of the command line. */
  withFlags(flags: OptionValues): BackgroundTask;
}

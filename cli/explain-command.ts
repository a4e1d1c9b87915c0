import { Command } from 'commander';
import { MachineConfigs } from '../api/machine-config.ts';
import { type ClusterFlags, readAll, withClusterFlags, withLeaseNamespace } from './change/live-cluster.ts';
import { onCluster } from './command-line/cluster-access.ts';
import { CommandError, exitCodes } from './command-line/exit-codes.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from './command-line/output.ts';
import { ExplainOutput } from './command-line/output-schemas.ts';
import { explainNode, formatExplanation } from './node-explanation.ts';
import { observeCluster } from './observe/cluster-watch.ts';

/** `shale explain`: why a node did what it did, and will do what it will. */
export function explainCommand(): Command {
  const command = new Command('explain').argument('<node>');
  return withLeaseNamespace(withClusterFlags(command))
    .addOption(outputFlag(...TABLE_FORMATS))
    .action((node: string, flags: ClusterFlags & { leaseNamespace: string; output: string }) =>
      onCluster(flags, async (client, signal) => {
        const [seen, machineConfigs] = await Promise.all([
          observeCluster(client, flags, signal),
          readAll(client, MachineConfigs, { signal }),
        ]);
        const explained = explainNode(node, seen, machineConfigs, Date.now());
        if (explained === undefined) {
          throw new CommandError(
            `MachineConfigNode ${node} does not exist: no pool selects such a node`,
            exitCodes.usage,
          );
        }
        if (flags.output === 'table') print(formatExplanation(explained));
        else printAs(flags.output, ExplainOutput, explained);
      }),
    );
}

import { Command } from 'commander';
import { MachineConfigs } from '../../api/machine-config.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { type ClusterFlags, readAll, withClusterFlags, withLeaseNamespace } from '../live-objects.ts';
import { observeCluster } from '../observe/cluster-watch.ts';
import { onCluster } from '../on-cluster.ts';
import { ExplainOutput } from '../output-schemas.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from '../print.ts';
import { explainNode, formatExplanation } from './node-explanation.ts';

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

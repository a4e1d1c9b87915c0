import { Command } from 'commander';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { type ClusterFlags, onCluster, readAll, withClusterFlags } from '../command-line/cluster-access.ts';
import { poolNamed } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import { cloudInitCommand, ignitionCommand } from './first-boot-command.ts';
import { formatNodeImage, type NodeImage, NodeImageOutput, nodeImageOf } from './node-image.ts';

/** `shale node`: what machines need to become nodes of a pool. */
export function nodeCommand(): Command {
  const image = withClusterFlags(new Command('image'))
    .description('Show the image that new nodes of a pool boot, and how a machine is installed from it.')
    .argument('<pool>')
    .addOption(outputFlag(...TABLE_FORMATS))
    .addHelpText('after', '\nExample:\n  shale node image worker')
    .action((pool: string, flags: ClusterFlags & { readonly output: string }) =>
      onCluster(flags, async (client, signal) => {
        const node = await readNodeImage(client, pool, signal);
        if (flags.output === 'table') print(formatNodeImage(node));
        else printAs(flags.output, NodeImageOutput, node);
      }),
    );
  return new Command('node').addCommand(image).addCommand(ignitionCommand()).addCommand(cloudInitCommand());
}

/** @throws {CommandError} when the pool doesn't exist. */
async function readNodeImage(client: ApiClient, name: string, signal: AbortSignal): Promise<NodeImage> {
  const [pools, config] = await Promise.all([
    readAll(client, MachineConfigPools, { signal }),
    client.find(MachineOSConfigs, name, { signal }),
  ]);
  return nodeImageOf(poolNamed(pools, name), config);
}

import { Command } from 'commander';
import { Leases } from '../../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, OPERATOR_DEPLOYMENT, SHALE_VERSION } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { versionOfHolder } from '../../cluster/lease.ts';
import { isAvailable, type ObservedCluster } from '../../view/observed-cluster.ts';
import {
  type ClusterFlags,
  onCluster,
  unlessForbidden,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { note, outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import {
  daemonVersions,
  formatVersions,
  type ProcessVersion,
  skewWarnings,
  VersionOutput,
  type Versions,
} from './version-skew.ts';

interface VersionFlags extends ClusterFlags, Places {
  readonly client?: boolean;
  readonly output: string;
}

/** `shale version`: the versions of this command and of what runs in the cluster, and whether they fit together. */
export function versionCommand(): Command {
  const command = new Command('version').option(
    '--client',
    'show the version of this command, without a cluster',
  );
  return withLeaseNamespace(withClusterFlags(command))
    .addOption(outputFlag(...TABLE_FORMATS))
    .action(async (flags: VersionFlags) => {
      if (flags.client === true) {
        if (flags.output === 'table') print(`client    ${SHALE_VERSION}`);
        else printAs(flags.output, VersionOutput, { client: SHALE_VERSION });
        return;
      }
      await onCluster(flags, async (client, signal) => {
        const versions = await readVersions(client, flags, signal);
        const warnings = skewWarnings(versions);
        if (flags.output === 'table') print(formatVersions(versions));
        else printAs(flags.output, VersionOutput, { ...versions, warnings });
        for (const warning of warnings) note(`warning: ${warning}`);
      });
    });
}

/** Reads which versions a cluster runs. @throws {CommandError} when the cluster can't be read. */
async function readVersions(
  client: ApiClient,
  places: Pick<VersionFlags, 'namespace' | 'leaseNamespace'>,
  signal: AbortSignal,
): Promise<Versions> {
  const { operator, builder, machineConfigNodes } = await observeCluster(client, places, signal);
  const { namespace } = places;
  // The Lease of a process that leads has the name of its Deployment.
  const processOf = async (
    deployment: ObservedCluster['operator'],
    name: string,
  ): Promise<ProcessVersion> => {
    if (!isAvailable(deployment)) return { state: 'absent' };
    const lease = await unlessForbidden(client.find(Leases, name, { namespace, signal }));
    return { state: 'running', version: lease && versionOfHolder(lease) };
  };
  return {
    client: SHALE_VERSION,
    operator: await processOf(operator, OPERATOR_DEPLOYMENT),
    builder: await processOf(builder, BUILDER_DEPLOYMENT),
    daemons: daemonVersions(
      machineConfigNodes.map(({ metadata: { name }, status }) => ({ name, version: status?.daemonVersion })),
    ),
  };
}

import { writeFile } from 'node:fs/promises';
import { Command, InvalidArgumentError } from 'commander';
import { DEFAULT_NAMESPACE } from '../../../api/names.ts';
import { inClusterConnection } from '../../../cluster/connection.ts';
import { createApiClient } from '../../../cluster/http-api-client.ts';
import { shutdownSignal } from '../../../cluster/process.ts';
import { print } from '../../command-line/output.ts';
import { type RegistryFlags, withRegistryFlags } from '../../command-line/registry-flags.ts';
import { tryRegistries } from '../check-registries.ts';
import { formatFindings, formatReport } from '../finding.ts';
import { RegistryTarget } from '../registry-targets.ts';

interface RegistryProbeFlags extends RegistryFlags {
  readonly from: string;
  readonly namespace: string;
  readonly target: readonly RegistryTarget[];
  readonly report?: string;
}

/**
 * `shale registry-probe`: the process of the pods of `doctor --probe`, with the permissions of their service account.
 */
export function registryProbeCommand(): Command {
  const command = new Command('registry-probe')
    .option('--from <where>', 'name of the place where it runs, for the report', 'here')
    .option('-n, --namespace <name>', 'namespace of the Secrets and CAs', DEFAULT_NAMESPACE)
    .option('--target <json...>', 'pool with its images and Secrets, as JSON', readTarget, [])
    .option('--report <file>', 'file to write the findings to, as JSON; default: standard output, as text');
  return withRegistryFlags(command).action(async (flags: RegistryProbeFlags) => {
    const { from, namespace, target, report } = flags;
    const client = createApiClient(await inClusterConnection(process.env), { fieldManager: 'shale-cli' });
    const results = await tryRegistries(target, { client, namespace, flags, from, signal: shutdownSignal() });
    if (report === undefined) print(formatFindings(results));
    else await writeFile(report, formatReport(results));
  });
}

function readTarget(text: string, before: readonly RegistryTarget[]): readonly RegistryTarget[] {
  try {
    return [...before, RegistryTarget.parse(JSON.parse(text))];
  } catch {
    throw new InvalidArgumentError('Expected a JSON object with pool, secrets, pull, push');
  }
}

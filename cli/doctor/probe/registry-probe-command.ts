import { writeFile } from 'node:fs/promises';
import { Command, InvalidArgumentError } from 'commander';
import { DEFAULT_NAMESPACE } from '../../../api/names.ts';
import { inClusterConnection } from '../../../cluster/connection.ts';
import { createApiClient } from '../../../cluster/http-api-client.ts';
import { shutdownSignal } from '../../../cluster/signals.ts';
import { print } from '../../print.ts';
import { type RegistryFlags, withRegistryFlags } from '../../registry-flags.ts';
import { tryRegistries } from '../check-registries.ts';
import { formatFindings } from '../finding.ts';
import { RegistryTarget } from '../registry-targets.ts';
import { formatReport } from './report.ts';

interface RegistryProbeFlags extends RegistryFlags {
  readonly from: string;
  readonly namespace: string;
  readonly target: readonly RegistryTarget[];
  readonly report?: string;
}

/** `shale registry-probe`: what the pod of `doctor --probe` does, by its service account. */
export function registryProbeCommand(): Command {
  const command = new Command('registry-probe')
    .option('--from <where>', 'what to call the place where it runs', 'here')
    .option('-n, --namespace <name>', 'where Secrets and CAs are', DEFAULT_NAMESPACE)
    .option('--target <json...>', 'a pool with its images and Secrets', readTarget, [])
    .option('--report <file>', 'where what was found goes, as JSON; default: standard output, in words');
  return withRegistryFlags(command).action(async (flags: RegistryProbeFlags) => {
    const { from, namespace, target, report } = flags;
    const client = createApiClient(await inClusterConnection(process.env));
    const found = await tryRegistries(target, { client, namespace, flags, from, signal: shutdownSignal() });
    if (report === undefined) print(formatFindings(found));
    else await writeFile(report, formatReport(found));
  });
}

function readTarget(text: string, before: readonly RegistryTarget[]): readonly RegistryTarget[] {
  try {
    return [...before, RegistryTarget.parse(JSON.parse(text))];
  } catch {
    throw new InvalidArgumentError('expected a JSON object with pool, secrets, pull, push');
  }
}

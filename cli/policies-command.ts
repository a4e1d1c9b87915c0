import { Command } from 'commander';
import { formatActions } from '../api/disruption-action.ts';
import { ClusterPolicies } from '../api/disruption-policy.ts';
import { defaultPolicySettings, type PolicySettings } from '../disruption/effective-policies.ts';
import { policyEntries } from '../disruption/policy-entries.ts';
import { policiesOfPool, summarisePools } from '../disruption/pool-policies.ts';
import { inWords } from '../disruption/summarise-policies.ts';
import { configurationProblems } from '../disruption/validate-policy.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { type OfflineCluster, offlineCluster } from '../predict/objects/offline-cluster.ts';
import { policiesOf } from '../predict/objects/offline-policies.ts';
import { warningsOf } from '../predict/objects/offline-problems.ts';
import { policiesLag } from '../view/policies.ts';
import { type FileFlags, objectsOf, refuseMalformed } from './change/file-flags.ts';
import { reportWarnings } from './change/report-warnings.ts';
import { withClusterFlags } from './command-line/cluster-access.ts';
import { UsageError } from './command-line/exit-codes.ts';
import { note, outputFlag, print, TABLE_FORMATS } from './command-line/output.ts';
import { printAs } from './command-line/print-as.ts';

interface PoliciesFlags extends FileFlags {
  readonly pool?: string;
  readonly defaults?: boolean;
  readonly containerRuntimeUnit: string;
}

/** `shale policies`: the disruption policies in force. */
export function policiesCommand(): Command {
  return withClusterFlags(new Command('policies'))
    .option(
      '-f, --filename <file...>',
      'files with the MachineConfiguration; default: the one in the cluster',
      [],
    )
    .option(
      '--pool <name>',
      'policies of this MachineConfigPool; default: those of pools that spec.shale does not name',
    )
    .option('--defaults', 'show only the defaults, without a cluster')
    .option(
      '--container-runtime-unit <name>',
      "container runtime's unit in the default policies; used if no operator has reported the effective ones",
      defaultPolicySettings.containerRuntimeUnit,
    )
    .addOption(outputFlag(...TABLE_FORMATS))
    .action(async (flags: PoliciesFlags) => {
      const cluster = offlineCluster(flags.defaults === true ? [] : await objectsOf(flags));
      refuseMalformed(cluster);
      if (flags.filename.length > 0) reportWarnings(warningsOf(cluster));
      const origin = flags.defaults !== true && flags.filename.length === 0 ? 'cluster' : 'files';
      const { policies, remarks } = inForce(cluster, origin, flags);
      if (flags.output === 'table') print(formatPolicies(policies));
      else printAs(flags.output, ClusterPolicies, policies);
      for (const remark of remarks) note(`shale: ${remark}`);
    });
}

/**
 * @returns for a live cluster what its operator reports as in force; for files what an operator would derive from them;
 *   as remarks why that differs from spec.
 * @throws {CommandError} when there is no such pool.
 */
function inForce(
  cluster: OfflineCluster,
  origin: 'cluster' | 'files',
  { pool, ...settings }: PolicySettings & Pick<PoliciesFlags, 'pool'>,
): { readonly policies: ClusterPolicies; readonly remarks: readonly string[] } {
  const { machineConfiguration, pools } = cluster;
  if (pool !== undefined && !pools.some(({ metadata }) => metadata.name === pool)) {
    throw new UsageError(`no MachineConfigPool ${pool} in the ${origin}`);
  }
  const given = policiesOf(cluster, pool, settings);
  const status = origin === 'cluster' ? machineConfiguration?.status : undefined;
  const stored =
    pool === undefined
      ? status?.nodeDisruptionPolicyStatus?.clusterPolicies
      : policiesOfPool(status, pool)?.policies;
  const others = pool === undefined ? otherPools(cluster) : [];
  if (stored !== undefined) {
    const lag = policiesLag(machineConfiguration);
    return { policies: stored, remarks: [...(lag === undefined ? [] : [lag]), ...others] };
  }
  const problems = configurationProblems(machineConfiguration?.spec).map(formatProblem);
  const invalid = problems.map((problem) => `this policy will not take effect: ${problem}`);
  const unwritten =
    'no operator has reported the effective policies; these are derived from spec and the defaults';
  return { policies: given, remarks: [...invalid, ...(origin === 'cluster' ? [unwritten] : []), ...others] };
}

/** Where no pool is asked for, and some have policies of their own. */
function otherPools({ machineConfiguration, pools }: OfflineCluster): string[] {
  const named = summarisePools(machineConfiguration?.spec, pools);
  return named === undefined
    ? []
    : [`policies of spec.shale also apply to these pools (shale policies --pool NAME): ${named}`];
}

function formatPolicies(policies: ClusterPolicies): string {
  const lines = policyEntries(policies).map(({ subject, change, actions, source, policy }) => {
    const what = change === undefined ? subject : `${change} rule of an ${subject}`;
    const by = policy === undefined ? 'set by the admin' : `set by the admin's policy ${policy}`;
    return `${what}: ${actions.map(inWords).join(', ')}${source === undefined ? '' : `  (${by})`}`;
  });
  return [...lines, `anything else: ${formatActions([{ type: 'Reboot' }])}`].join('\n');
}

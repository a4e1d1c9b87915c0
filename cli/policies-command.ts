import { Command } from 'commander';
import { type EffectiveAction, formatActions } from '../api/disruption-action.ts';
import { ClusterPolicies, MIRROR_CHANGES } from '../api/disruption-policy.ts';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { defaultPolicySettings, type PolicySettings } from '../disruption/effective-policies.ts';
import { policiesOfPool, summarisePools } from '../disruption/pool-policies.ts';
import { inWords } from '../disruption/summarise-policies.ts';
import { configurationProblems } from '../disruption/validate-policy.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { type OfflineCluster, offlineCluster } from '../predict/objects/offline-cluster.ts';
import { policiesOf } from '../predict/objects/offline-policies.ts';
import { warningsOf } from '../predict/objects/offline-problems.ts';
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
      const live = flags.defaults !== true && flags.filename.length === 0;
      const { policies, remarks } = inForce(cluster, live, flags);
      if (flags.output === 'table') print(formatPolicies(policies));
      else printAs(flags.output, ClusterPolicies, policies);
      for (const remark of remarks) note(`shale: ${remark}`);
    });
}

interface InForce {
  readonly policies: ClusterPolicies;
  /** Why the policies in force differ from spec. */
  readonly remarks: readonly string[];
}

/**
 * @returns for a live cluster what its operator reports as in force; for files what an operator would derive from them.
 * @throws {CommandError} when there is no such pool.
 */
function inForce(
  cluster: OfflineCluster,
  live: boolean,
  { pool, ...settings }: PolicySettings & Pick<PoliciesFlags, 'pool'>,
): InForce {
  const { machineConfiguration, pools } = cluster;
  if (pool !== undefined && !pools.some(({ metadata }) => metadata.name === pool)) {
    throw new UsageError(`no MachineConfigPool ${pool} in ${live ? 'the cluster' : 'the files'}`);
  }
  const given = policiesOf(cluster, pool, settings);
  const status = live ? machineConfiguration?.status : undefined;
  const stored =
    pool === undefined
      ? status?.nodeDisruptionPolicyStatus?.clusterPolicies
      : policiesOfPool(status, pool)?.policies;
  const others = pool === undefined ? otherPools(cluster) : [];
  if (stored !== undefined) {
    return { policies: stored, remarks: [...lagging(machineConfiguration), ...others] };
  }
  const problems = configurationProblems(machineConfiguration?.spec).map(formatProblem);
  const invalid = problems.map((problem) => `this policy will not take effect: ${problem}`);
  const unwritten =
    'no operator has reported the effective policies; these are derived from spec and the defaults';
  return { policies: given, remarks: [...invalid, ...(live ? [unwritten] : []), ...others] };
}

/** Where no pool is asked for, and some have policies of their own. */
function otherPools({ machineConfiguration, pools }: OfflineCluster): string[] {
  const named = summarisePools(machineConfiguration?.spec, pools);
  return named === undefined
    ? []
    : [`policies of spec.shale also apply to these pools (shale policies --pool NAME): ${named}`];
}

function lagging(configuration: MachineConfiguration | undefined): string[] {
  const applied = configuration?.status?.conditions?.find(
    ({ type }) => type === 'NodeDisruptionPolicyApplied',
  );
  if (configuration?.status?.observedGeneration !== configuration?.metadata.generation) {
    return ['spec has changed, but the operator has not applied it yet'];
  }
  return applied?.status === 'False' ? [`the policies in spec are not in effect: ${applied.message}`] : [];
}

interface Policy {
  readonly actions: readonly EffectiveAction[];
  readonly source?: 'Admin';
  readonly policy?: string | undefined;
}

function formatPolicies({
  files = [],
  patterns = [],
  units = [],
  sshkey,
  imageMirrors = [],
}: ClusterPolicies): string {
  return [
    ...[...files, ...patterns].map((file) => policyLine(file.path, file)),
    ...units.map((unit) => policyLine(unit.name, unit)),
    ...(sshkey === undefined ? [] : [policyLine('SSH keys', sshkey)]),
    ...imageMirrors.flatMap((mirror) =>
      MIRROR_CHANGES.flatMap((change) => {
        const { [change]: actions, kind, policy } = mirror;
        return actions === undefined
          ? []
          : [
              policyLine(`${change} rule of an ${kind}`, {
                actions,
                source: 'Admin',
                policy,
              }),
            ];
      }),
    ),
    `anything else: ${formatActions([{ type: 'Reboot' }])}`,
  ].join('\n');
}

function policyLine(subject: string, { actions, source, policy }: Policy): string {
  const by = policy === undefined ? 'set by the admin' : `set by the admin's policy ${policy}`;
  return `${subject}: ${actions.map(inWords).join(', ')}${source === undefined ? '' : `  (${by})`}`;
}

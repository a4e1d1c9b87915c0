import { Command } from 'commander';
import { formatActions } from '../api/disruption-action.ts';
import type { ClusterPolicies, MachineConfiguration } from '../api/machine-configuration.ts';
import { defaultPolicySettings, type PolicySettings } from '../disruption/effective-policies.ts';
import { inWords } from '../disruption/summarise-policies.ts';
import { validatePolicy } from '../disruption/validate-policy.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { type FileFlags, objectsOf, refuseMalformed } from './change/file-flags.ts';
import { type OfflineCluster, offlineCluster, policiesOf } from './change/offline-cluster.ts';
import { withClusterFlags } from './command-line/cluster-access.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from './command-line/output.ts';
import { PoliciesOutput } from './command-line/output-schemas.ts';

interface PoliciesFlags extends FileFlags {
  readonly defaults?: boolean;
  readonly containerRuntimeUnit: string;
}

/** `shale policies`: the disruption policies in force. */
export function policiesCommand(): Command {
  const command = new Command('policies').description(
    'List the effective node disruption policies: the defaults and the overrides of the MachineConfiguration.',
  );
  return withClusterFlags(command)
    .option(
      '-f, --filename <file...>',
      'files with the MachineConfiguration; default: the one in the cluster',
      [],
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
      const live = flags.defaults !== true && flags.filename.length === 0;
      const { policies, remarks } = inForce(cluster, live, flags);
      if (flags.output === 'table') print(formatPolicies(policies));
      else printAs(flags.output, PoliciesOutput, policies);
      for (const remark of remarks) process.stderr.write(`shale: ${remark}\n`);
    });
}

interface InForce {
  readonly policies: ClusterPolicies;
  /** Why the policies in force differ from spec. */
  readonly remarks: readonly string[];
}

/** @returns for a live cluster what its operator reports as in force; for files what an operator would derive from them. */
function inForce(cluster: OfflineCluster, live: boolean, settings: PolicySettings): InForce {
  const given = policiesOf(cluster, settings);
  const { machineConfiguration } = cluster;
  const stored = live ? machineConfiguration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies : undefined;
  if (stored !== undefined) {
    return { policies: stored, remarks: lagging(machineConfiguration) };
  }
  const problems = validatePolicy(machineConfiguration?.spec?.nodeDisruptionPolicy ?? {}).map(formatProblem);
  const invalid = problems.map((problem) => `this policy will not take effect: ${problem}`);
  const unwritten =
    'no operator has reported the effective policies; these are derived from spec and the defaults';
  return { policies: given, remarks: [...invalid, ...(live ? [unwritten] : [])] };
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

function formatPolicies({ files = [], units = [], sshkey, imageMirrors = [] }: ClusterPolicies): string {
  const line = (
    subject: string,
    actions: readonly Parameters<typeof inWords>[0][],
    source: string | undefined,
  ) => `${subject}: ${actions.map(inWords).join(', ')}${source === undefined ? '' : '  (set by the admin)'}`;
  return [
    ...files.map(({ path, actions, source }) => line(path, actions, source)),
    ...units.map(({ name, actions, source }) => line(name, actions, source)),
    ...(sshkey === undefined ? [] : [line('SSH keys', sshkey.actions, sshkey.source)]),
    ...imageMirrors.flatMap(({ kind, ...changes }) =>
      Object.entries(changes).map(([name, actions]) =>
        line(`${name} rule of an ${kind}`, actions ?? [], 'Admin'),
      ),
    ),
    `anything else: ${formatActions([{ type: 'Reboot' }])}`,
  ].join('\n');
}

import type { EffectiveAction } from '../../api/disruption-action.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import { inWords } from '../../disruption/summarise-policies.ts';
import type { PolicyRow, Table } from '../model/view.ts';

/** @returns the disruption policies in force, as the operator wrote them; none where it has not written any. */
export function policyRows(configuration: MachineConfiguration | undefined): Table<PolicyRow> {
  const {
    files = [],
    units = [],
    sshkey,
    imageMirrors = [],
  } = configuration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? {};
  const rows: PolicyRow[] = [
    ...files.map(({ path, actions, source }) => row('file', path, actions, source)),
    ...units.map(({ name, actions, source }) => row('unit', name, actions, source)),
    ...(sshkey === undefined ? [] : [row('SSH keys', 'SSH keys', sshkey.actions, sshkey.source)]),
    ...imageMirrors.flatMap(({ kind, ...changes }) =>
      (['added', 'changed', 'removed'] as const).flatMap((change) => {
        const actions = changes[change];
        return actions === undefined ? [] : [row('mirrors', `${change} ${kind}`, actions, 'Admin')];
      }),
    ),
  ];
  return Object.fromEntries(rows.map((each) => [`${each.kind} ${each.subject}`, each]));
}

function row(
  kind: PolicyRow['kind'],
  subject: string,
  actions: readonly EffectiveAction[],
  source: 'Admin' | undefined,
): PolicyRow {
  return {
    kind,
    subject,
    actions: actions.map(inWords).join(', '),
    source: source === 'Admin' ? 'admin' : 'default',
  };
}

/** @returns why what is in force is not what spec says, in words; undefined where it is. */
export function policyTrouble(configuration: MachineConfiguration | undefined): string | undefined {
  if (configuration === undefined) return undefined;
  const applied = configuration.status?.conditions?.find(
    ({ type }) => type === 'NodeDisruptionPolicyApplied',
  );
  if (configuration.status?.observedGeneration !== configuration.metadata.generation)
    return 'The policies in spec have changed, but the operator has not applied them yet';
  return applied?.status === 'False'
    ? `The policies in spec are not in effect: ${applied.message}`
    : undefined;
}

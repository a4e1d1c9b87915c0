import type { EffectiveAction } from '../api/disruption-action.ts';
import { type ClusterPolicies, MIRROR_CHANGES } from '../api/disruption-policy.ts';

/** A disruption policy in force. */
export interface PolicyEntry {
  readonly kind: 'file' | 'pattern' | 'unit' | 'SSH keys' | 'mirrors';
  /** A path, a pattern of paths, a unit, or the kind of a set of mirrors. */
  readonly subject: string;
  /** Of a rule of mirrors. */
  readonly change?: (typeof MIRROR_CHANGES)[number];
  readonly actions: readonly EffectiveAction[];
  readonly source?: 'Admin' | undefined;
  /** The policy of spec.shale that it comes from. */
  readonly policy?: string | undefined;
}

/** @returns each policy, in the order of the status. */
export function policyEntries(policies: ClusterPolicies): readonly PolicyEntry[] {
  const { files = [], patterns = [], units = [], sshkey, imageMirrors = [] } = policies;
  return [
    ...files.map((each) => ({ ...each, kind: 'file' as const, subject: each.path })),
    ...patterns.map((each) => ({ ...each, kind: 'pattern' as const, subject: each.path })),
    ...units.map((each) => ({ ...each, kind: 'unit' as const, subject: each.name })),
    ...(sshkey === undefined ? [] : [{ ...sshkey, kind: 'SSH keys' as const, subject: 'SSH keys' }]),
    ...imageMirrors.flatMap(({ kind: subject, policy, ...rules }) =>
      MIRROR_CHANGES.flatMap((change): PolicyEntry[] => {
        const actions = rules[change];
        if (actions === undefined) return [];
        return [{ kind: 'mirrors', subject, change, actions, source: 'Admin', policy }];
      }),
    ),
  ];
}

/** @returns what a policy is about, as text. */
export function formatSubject({ subject, change }: PolicyEntry): string {
  return change === undefined ? subject : `${change} ${subject}`;
}

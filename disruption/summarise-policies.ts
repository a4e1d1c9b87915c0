import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { noun } from '../api/plural.ts';
import { formatSubject, policyEntries } from './policy-entries.ts';

/** Characters: with them `kubectl get` fits 120 columns; the defaults are shown with `-o wide`. */
const LONGEST = { admin: 80, defaults: 300 };

/**
 * @returns the policies in force as one line for each source: `/etc/chrony.conf: Restart(chronyd.service); …`; no line
 *   of the admin's where they have none.
 */
export function summarisePolicies(policies: ClusterPolicies): {
  readonly admin: string | undefined;
  readonly defaults: string;
} {
  const entries = policyEntries(policies).filter(({ kind }) => kind !== 'pattern');
  const line = (of: keyof typeof LONGEST) =>
    shortened(
      entries
        .filter(({ source }) => (source === 'Admin') === (of === 'admin'))
        .map((entry) => `${formatSubject(entry)}: ${entry.actions.map(inWords).join('+')}`),
      LONGEST[of],
    );
  return { admin: line('admin') || undefined, defaults: line('defaults') };
}

/** @returns the action of a policy as text: `Restart(chronyd.service)`. */
export function inWords({ type, reload, restart }: EffectiveAction): string {
  const service = reload?.serviceName ?? restart?.serviceName;
  return service === undefined ? type : `${type}(${service})`;
}

function shortened(texts: readonly string[], longest: number): string {
  const whole = texts.join('; ');
  if (whole.length <= longest) return whole;
  const shown = texts.findIndex((_, index) => texts.slice(0, index + 1).join('; ').length > longest);
  if (shown === 0) return `${texts.length} ${noun(texts.length, 'policy', 'policies')}`;
  return [...texts.slice(0, shown), `and ${texts.length - shown} more`].join('; ');
}

import type { EffectiveAction } from '../api/disruption-action.ts';
import { type ClusterPolicies, MIRROR_CHANGES } from '../api/disruption-policy.ts';
import { noun } from '../api/plural.ts';

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
  const { admin = [], defaults = [] } = Object.groupBy(entriesOf(policies), ({ of }) => of);
  const line = (of: keyof typeof LONGEST, entries: typeof admin) =>
    shortened(
      entries.map(({ text }) => text),
      LONGEST[of],
    );
  return { admin: line('admin', admin) || undefined, defaults: line('defaults', defaults) };
}

function entriesOf({ files = [], units = [], sshkey, imageMirrors = [] }: ClusterPolicies) {
  const entry = (subject: string, actions: readonly EffectiveAction[], source?: 'Admin') => ({
    of: source === 'Admin' ? ('admin' as const) : ('defaults' as const),
    text: `${subject}: ${actions.map(inWords).join('+')}`,
  });
  return [
    ...files.map(({ path, actions, source }) => entry(path, actions, source)),
    ...units.map(({ name, actions, source }) => entry(name, actions, source)),
    ...(sshkey === undefined ? [] : [entry('SSH keys', sshkey.actions, sshkey.source)]),
    ...imageMirrors.flatMap(({ kind, ...changes }) =>
      MIRROR_CHANGES.flatMap((change) => {
        const actions = changes[change];
        return actions === undefined ? [] : [entry(`${change} ${kind}`, actions, 'Admin')];
      }),
    ),
  ];
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

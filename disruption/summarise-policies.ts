import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';
import { present } from '../api/present.ts';

export interface PolicySummary {
  /** Absent if the admin has no policies. */
  readonly admin?: string;
  readonly defaults: string;
}

/** Characters of a line that `kubectl get` shows and people read. */
const LONGEST = 300;

/** @returns the policies in force as one line for each source: `/etc/chrony.conf: Restart(chronyd.service); …`. */
export function summarisePolicies(policies: ClusterPolicies): PolicySummary {
  const entries = entriesOf(policies);
  const line = (byAdmin: boolean) =>
    shortened(entries.filter((entry) => entry.byAdmin === byAdmin).map(({ text }) => text));
  const admin = line(true);
  return present({ admin: admin === '' ? undefined : admin, defaults: line(false) });
}

function entriesOf({ files = [], units = [], sshkey, imageMirrors = [] }: ClusterPolicies) {
  const entry = (subject: string, actions: readonly EffectiveAction[], source?: 'Admin') => ({
    byAdmin: source === 'Admin',
    text: `${subject}: ${actions.map(inWords).join('+')}`,
  });
  return [
    ...files.map(({ path, actions, source }) => entry(path, actions, source)),
    ...units.map(({ name, actions, source }) => entry(name, actions, source)),
    ...(sshkey === undefined ? [] : [entry('SSH keys', sshkey.actions, sshkey.source)]),
    ...imageMirrors.flatMap(({ kind, ...changes }) =>
      (['added', 'changed', 'removed'] as const).flatMap((change) => {
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

function shortened(texts: readonly string[]): string {
  const whole = texts.join('; ');
  if (whole.length <= LONGEST) return whole;
  const shown = texts.findIndex((_, index) => texts.slice(0, index + 1).join('; ').length > LONGEST);
  return [...texts.slice(0, shown), `and ${texts.length - shown} more`].join('; ');
}

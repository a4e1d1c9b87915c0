import { formatDuration } from '../../api/duration.ts';
import type { FailureKind, ReportedStep } from '../../api/failing-step.ts';
import type { NodeConditionType } from '../../api/machine-config-node.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSConfigConditionType } from '../../api/machine-os-config.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { formatFailingOn } from '../../cluster/failing-steps.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/** What fails, wherever a status says so. */
interface FailingStep {
  /** The object, what is done, and how it fails. */
  readonly what: string;
  /** RFC 3339 */
  readonly since: string;
  readonly fix: string;
}

const FIXES: Readonly<Record<FailureKind, string>> = {
  Refused:
    'change what refuses the request, as its message says: a webhook, an admission policy, a quota, a permission, or the object itself. Shale tries again every minute',
  Conflict:
    'find out who else writes the object all the time: kubectl get KIND NAME -o yaml --show-managed-fields',
  Throttled: 'find out what the API server is busy with; it asks Shale to wait',
  Unavailable: 'check the API server, and the webhook that its message names, if any',
  Unexpected:
    'do what the message says; the log of the process has more: kubectl logs deployment/shale-operator',
};
const ANY_FIX =
  'do what the message says: a refusal stays until somebody changes the webhook, the policy, the permission or the object. Shale tries again every minute';

/**
 * Lists what operator, builder and daemons can't do, as the statuses of pools, MachineOSConfigs, MachineConfigNodes and
 * of the MachineConfiguration have it: since when, and in the API server's own words.
 *
 * @param configuration undefined if there is none, or the user may not read it. @param now ms since the epoch.
 */
export function judgeFailingSteps(
  cluster: Statuses,
  configuration: MachineConfiguration | undefined,
  now: number,
): Finding[] {
  const { ok, failure } = findings('failing steps');
  const steps = failingSteps(cluster, configuration);
  if (steps.length === 0) return [ok('nothing fails that operator, builder or daemons have to do')];
  return steps.map(({ what, since, fix }) => {
    const ago = now - Date.parse(since);
    return failure(`${what} (since ${since}${Number.isNaN(ago) ? '' : `, for ${formatDuration(ago)}`})`, fix);
  });
}

type Statuses = Pick<ObservedCluster, 'pools' | 'machineOSConfigs' | 'machineConfigNodes'>;

function failingSteps(
  { pools, machineOSConfigs, machineConfigNodes }: Statuses,
  configuration: MachineConfiguration | undefined,
): readonly FailingStep[] {
  const steps = [
    ...[...pools, ...machineOSConfigs].flatMap(({ status }) => status?.failingSteps ?? []),
    ...(configuration?.status?.failingSteps ?? []),
  ];
  const isListed = ({ kind, name }: Pick<ReportedStep, 'kind' | 'name'>) =>
    steps.some((step) => step.kind === kind && step.name === name);
  const inConditions = [
    // Processes of an earlier version list no steps.
    ...machineOSConfigs.flatMap(({ metadata: { name }, status }) =>
      status?.failingSteps === undefined
        ? fromConditions(`MachineOSConfig ${name}: `, status?.conditions, OF_BUILDER)
        : [],
    ),
    ...machineConfigNodes.flatMap(({ metadata: { name }, status }) =>
      fromConditions(`Node ${name}: `, status?.conditions, [
        ...(isListed({ kind: 'Node', name }) ? [] : OF_NODE),
        ...OF_DAEMON,
      ]),
    ),
    // It names the objects itself.
    ...(configuration?.status?.failingSteps === undefined
      ? fromConditions('', configuration?.status?.conditions, ['Degraded'])
      : []),
    ...fromConditions(`ConfigMap ${SWITCH_CONFIG_MAP}: `, configuration?.status?.conditions, [
      'LayeringDegraded',
    ]),
  ];
  // One step may be in the status of several pools, and in that of the MachineConfiguration.
  const known = new Map(
    [...steps.map(fromStep), ...inConditions].toReversed().map((step) => [step.what, step]),
  );
  return [...known.values()].toReversed();
}

const OF_BUILDER = ['StepsFailing'] satisfies MachineOSConfigConditionType[];
const OF_NODE = ['StepsFailing'] satisfies NodeConditionType[];
const OF_DAEMON = ['DaemonStepsFailing'] satisfies NodeConditionType[];

function fromStep({ kind, name, namespace, step, reason, message, since }: ReportedStep): FailingStep {
  const object = { apiVersion: '', kind, metadata: { name, namespace } };
  const what = formatFailingOn({ object, doing: step, failure: { kind: reason, why: message } });
  return { what, since, fix: FIXES[reason] };
}

/** @returns what conditions that are True say. @param about the object that they are about. */
function fromConditions(
  about: string,
  conditions: readonly Condition[] | undefined,
  types: readonly string[],
): readonly FailingStep[] {
  return (conditions ?? [])
    .filter(({ type, status }) => types.includes(type) && status === 'True')
    .map(({ message, lastTransitionTime: since }) => ({ what: `${about}${message}`, since, fix: ANY_FIX }));
}

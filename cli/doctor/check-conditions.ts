import { formatDuration } from '../../api/duration.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { Condition } from '../../api/object.ts';
import { isAwaited } from '../../view/build-view.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { conditionRemedies, type ReportingKind } from './condition-remedies.ts';
import { type Finding, findings, namedNodes } from './finding.ts';

/** The objects whose conditions are read; the MachineConfiguration is undefined where it can't be. */
type Statuses = Pick<ObservedCluster, 'pools' | 'machineOSConfigs' | 'machineConfigNodes' | 'builds'> & {
  readonly configuration: MachineConfiguration | undefined;
};

/**
 * Lists the conditions of Shale's objects that call for somebody, with what to do. Nodes with the same condition,
 * reason and message are one finding.
 *
 * @param now ms since the epoch.
 */
export function judgeConditions(statuses: Statuses, now: number): Finding[] {
  const bad = conditionsOf(statuses).flatMap((condition) => {
    const remedy = conditionRemedies[condition.kind][condition.type];
    if (remedy?.status !== condition.status) return [];
    const { level, byReason = {}, fix: anyFix } = remedy;
    const fix = Object.hasOwn(byReason, condition.reason) ? byReason[condition.reason] : anyFix;
    return fix === undefined ? [] : [{ ...condition, level, fix }];
  });
  const groups = Map.groupBy(bad, ({ kind, type, reason, message }) =>
    JSON.stringify([kind, type, reason, message]),
  );
  if (groups.size === 0) return [findings('conditions').ok('no pool, node or build needs attention')];
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { kind, name, type, reason, message, lastTransitionTime: since, level, fix } = first;
    const names = namedNodes([name, ...others.map((other) => other.name)]);
    const why = reason === type ? type : `${type} (${reason})`;
    const age = formatDuration(now - Date.parse(since));
    const what = `${kind} ${names}: ${why}: ${message} (since ${since}, for ${age})`;
    return findings('conditions')[level](what, fix.replaceAll('NAME', name));
  });
}

/** A condition with the object that has it. */
interface ObjectCondition extends Condition {
  readonly kind: ReportingKind;
  readonly name: string;
}

function conditionsOf(statuses: Statuses): readonly ObjectCondition[] {
  const { configuration, pools, machineOSConfigs, machineConfigNodes, builds } = statuses;
  const each = (
    kind: ObjectCondition['kind'],
    objects: readonly {
      readonly metadata: { readonly name: string };
      readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
    }[],
  ) =>
    objects.flatMap(({ metadata: { name }, status }) =>
      (status?.conditions ?? []).map((condition) => ({ ...condition, kind, name })),
    );
  return [
    ...each('MachineConfiguration', configuration === undefined ? [] : [configuration]),
    ...each('MachineConfigPool', pools.map(withEachHold)),
    ...each('MachineOSConfig', machineOSConfigs),
    // A build that no pool waits for is of the past.
    ...each(
      'MachineOSBuild',
      builds.filter((build) => isAwaited(build, statuses)),
    ),
    ...each('MachineConfigNode', machineConfigNodes),
  ];
}

/** The condition UpdatesHeld has the reason of the first hold alone; the status lists each of them. */
function withEachHold({ metadata, status = {} }: MachineConfigPool) {
  // An operator before 0.2 has no such list.
  const { conditions = [], heldUpdates = [{}] } = status;
  return {
    metadata,
    status: {
      conditions: conditions.flatMap((condition) =>
        condition.type === 'UpdatesHeld'
          ? heldUpdates.map((hold) => ({ ...condition, ...hold }))
          : [condition],
      ),
    },
  };
}

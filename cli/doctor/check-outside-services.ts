import type { Deployment } from '../../api/kubernetes.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { noun } from '../../api/plural.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { readFleetLockUrl } from '../../api/pool-settings/values.ts';
import type { PoolSettings } from '../../rollout/pools/pool-settings.ts';
import { settingsOfPool } from '../../view/holds.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';
import { flagValues } from './operator-flags.ts';

/** What a pool needs of the operator's flags. */
interface Need {
  readonly setting: 'holdOnAlerts' | 'holdOnQueries' | 'fleetLock';
  readonly flag: string;
  /** The value that the flag has to list; undefined: any. */
  readonly url?: string | undefined;
  /** What doesn't happen without it. */
  readonly held: string;
}

/**
 * Checks that the operator has the flags by which it asks what pools wait for. The operator reports that one is missing
 * (condition UpdatesHeld), but only once nodes could start.
 *
 * @returns nothing where no pool waits for a service, or there is no operator: that is a finding of its own.
 */
export function judgeOutsideServices(
  { pools, operator }: Pick<ObservedCluster, 'pools' | 'operator'>,
  namespace: string,
): Finding[] {
  if (operator === undefined) return [];
  const needs = pools.flatMap((pool) =>
    needsOf(settingsOfPool(pool)).map((need) => ({ ...need, pool: pool.metadata.name })),
  );
  const groups = Map.groupBy(needs, ({ flag, url = '' }) => `${flag} ${url}`);
  return [...groups.values()].flatMap((group) => {
    const [need] = group;
    const names = group.map(({ pool }) => pool);
    return need === undefined ? [] : [judgeNeed(need, names, operator, namespace)];
  });
}

/** What can't be read of the settings is in the condition Degraded of the pool. */
function needsOf({ holdOnAlerts, holdOnQueries, fleetLock }: PoolSettings): readonly Need[] {
  const update = 'no update starts';
  const needs: readonly (Need | false)[] = [
    holdOnAlerts.kind === 'named' && { setting: 'holdOnAlerts', flag: '--alertmanager-url', held: update },
    holdOnQueries.kind === 'named' && { setting: 'holdOnQueries', flag: '--prometheus-url', held: update },
    fleetLock.kind === 'named' && {
      setting: 'fleetLock',
      flag: '--fleetlock-url',
      url: fleetLock.lock.url,
      held: 'no node reboots',
    },
  ];
  return needs.filter((need) => need !== false);
}

function judgeNeed(
  { setting, flag, url, held }: Need,
  pools: readonly string[],
  operator: Deployment,
  namespace: string,
): Finding {
  const { ok, failure } = findings('outside services');
  const who = `${noun(pools.length, 'pool')} ${pools.join(', ')}`;
  const field = fieldOf(setting);
  const values = flagValues(operator, flag).map(asOperatorReads);
  const isSet = url === undefined ? values.some((value) => value !== '') : values.includes(url);
  if (isSet) return ok(`${who}: the operator has ${flag}, which ${field} needs`);
  const missing = `${flag} ${url ?? 'URL'}`;
  return failure(
    `${who}: ${held}, because ${field} needs ${missing}, which the operator doesn't have`,
    `add ${missing} to the arguments of deployment/${OPERATOR_DEPLOYMENT} in ${namespace} (operator.arguments of the Helm chart), or change ${field}: kubectl edit mcp ${pools.join(' ')}`,
  );
}

/** A value that the operator refuses doesn't let it start. */
function asOperatorReads(value: string): string {
  try {
    return readFleetLockUrl(value);
  } catch {
    return value;
  }
}

import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { noun } from '../../api/plural.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { ALERTS_UNKNOWN } from '../../rollout/gates/alerts.ts';
import { QUERIES_UNKNOWN } from '../../rollout/gates/queries.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { type PoolSettings, poolSettings } from '../../rollout/pools/pool-settings.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';
import { heldUpdates } from './held-updates.ts';
import { flagValues } from './operator-flags.ts';

/** What pools may wait for, and whom the operator asks about it. */
const SOURCES = [
  {
    hold: 'holdOnAlerts',
    system: 'Alertmanager',
    flag: 'alertmanager',
    unknown: ALERTS_UNKNOWN,
  },
  {
    hold: 'holdOnQueries',
    system: 'Prometheus',
    flag: 'prometheus',
    unknown: QUERIES_UNKNOWN,
  },
] as const;
type Source = (typeof SOURCES)[number];

interface HeldPool {
  readonly pool: MachineConfigPool;
  readonly hold: PoolSettings['holdOnAlerts'] | PoolSettings['holdOnQueries'];
}

/**
 * Checks that the operator can ask what pools wait for (spec.shale.holdOnAlerts, spec.shale.holdOnQueries): without
 * an answer no update starts there. Whether the server answers is what the operator last reported, as only the operator
 * reaches it for sure; it asks while nodes could start.
 *
 * @returns nothing where no pool waits for any of it.
 */
export function judgeMonitoring(cluster: ObservedCluster, namespace: string): Finding[] {
  const held = cluster.pools.map((pool) => ({ pool, settings: poolSettings(pool, defaultRolloutOptions) }));
  return SOURCES.flatMap((source) => {
    const pools = held
      .map(({ pool, settings }): HeldPool => ({ pool, hold: settings[source.hold] }))
      .filter(({ hold }) => hold.kind !== 'none');
    return pools.length === 0 ? [] : judgeSource(source, pools, cluster, namespace);
  });
}

function judgeSource(
  source: Source,
  pools: readonly HeldPool[],
  { operator }: Pick<ObservedCluster, 'operator'>,
  namespace: string,
): Finding[] {
  const { ok, failure } = findings('monitoring');
  const { system, hold: name, flag } = source;
  const field = fieldOf(name);
  const unreadable = pools.filter(({ hold }) => hold.kind === 'unreadable').map(({ pool }) => pool);
  const named = pools.filter(({ hold }) => hold.kind === 'named').map(({ pool }) => pool);
  const malformed = unreadable.map(({ metadata: { name } }) =>
    failure(
      `pool ${name}: ${field} can't be read, so no update starts`,
      `correct it; the condition Degraded of the pool has the error: kubectl describe mcp ${name}`,
    ),
  );
  // What has no operator is a finding of its own.
  if (named.length === 0 || operator === undefined) return malformed;
  const names = named.map(({ metadata }) => metadata.name);
  const who = `${noun(names.length, 'pool')} ${names.join(', ')}`;
  const [url = ''] = flagValues(operator, `--${flag}-url`);
  if (url === '')
    return [
      ...malformed,
      failure(
        `${who}: no update starts, because ${field} needs --${flag}-url, which the operator doesn't have`,
        `add --${flag}-url with the root of the ${system} to the arguments of deployment/${OPERATOR_DEPLOYMENT} in ${namespace} (operator.arguments of the Helm chart), or remove ${field}: kubectl edit mcp ${names.join(' ')}`,
      ),
    ];
  const silent = named.flatMap((pool) => reportOf(source, pool, url) ?? []);
  return [...malformed, ...(silent.length > 0 ? silent : [ok(`${who}: the operator asks ${system} ${url}`)])];
}

/** @returns what the operator last reported, if it has no answer. */
function reportOf(
  { hold, unknown, system, flag }: Source,
  pool: MachineConfigPool,
  url: string,
): Finding | undefined {
  const held = heldUpdates(pool).find(({ reason }) => reason === unknown);
  if (held === undefined) return undefined;
  return findings('monitoring').failure(
    `pool ${pool.metadata.name}: the operator got no answer from ${system} ${url}: ${held.message}`,
    `correct --${flag}-url, --${flag}-token-file or --${flag}-ca-file of the operator, ${fieldOf(hold)} of the pool, or what the message names`,
  );
}

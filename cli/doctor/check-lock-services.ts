import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { noun } from '../../api/plural.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { readFleetLockUrl } from '../../api/pool-settings/values.ts';
import { SLOT_UNKNOWN } from '../../rollout/gates/fleet-lock.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { poolSettings } from '../../rollout/pools/pool-settings.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';
import { heldUpdates } from './held-updates.ts';
import { flagValues } from './operator-flags.ts';

const FIELD = fieldOf('fleetLock');
const FLAG = '--fleetlock-url';
const { ok, failure } = findings('lock services');

/**
 * Checks that the operator may ask the lock services that pools name (spec.shale.fleetLock): without an answer no node
 * reboots there. Whether a service answers is what the operator last reported, as only the operator reaches it for
 * sure; it asks while nodes could reboot.
 *
 * @returns nothing where no pool names a service.
 */
export function judgeLockServices({ pools, operator }: ObservedCluster, namespace: string): Finding[] {
  const settings = pools.map((pool) => ({ pool, ...poolSettings(pool, defaultRolloutOptions) }));
  const malformed = settings
    .filter(({ fleetLock }) => fleetLock.kind === 'unreadable')
    .map(({ pool: { metadata } }) =>
      failure(
        `pool ${metadata.name}: ${FIELD} can't be read, so no node reboots`,
        `correct it; the condition Degraded of the pool has the error: kubectl describe mcp ${metadata.name}`,
      ),
    );
  // What has no operator is a finding of its own.
  if (operator === undefined) return malformed;
  const allowed = new Set(flagValues(operator, FLAG).map(normal));
  const byURL = Map.groupBy(
    settings.flatMap(({ pool, fleetLock }) =>
      fleetLock.kind === 'named' ? [{ pool, url: fleetLock.lock.url }] : [],
    ),
    ({ url }) => url,
  );
  return [
    ...malformed,
    ...[...byURL].flatMap(([url, naming]) => {
      const named = naming.map(({ pool }) => pool);
      return allowed.has(url) ? judgeAnswers(url, named) : [unlisted(url, named, namespace)];
    }),
  ];
}

/** @returns a value of the flag as the operator reads it; one that it refuses doesn't let it start. */
function normal(value: string): string {
  try {
    return readFleetLockUrl(value);
  } catch {
    return value;
  }
}

function unlisted(url: string, pools: readonly MachineConfigPool[], namespace: string): Finding {
  const names = pools.map(({ metadata }) => metadata.name);
  return failure(
    `${noun(names.length, 'pool')} ${names.join(', ')}: no node reboots, because ${FIELD} names ${url}, which ${FLAG} of the operator doesn't list`,
    `add ${FLAG} ${url} to the arguments of deployment/${OPERATOR_DEPLOYMENT} in ${namespace} (operator.arguments of the Helm chart), or correct ${FIELD}: kubectl edit mcp ${names.join(' ')}`,
  );
}

function judgeAnswers(url: string, pools: readonly MachineConfigPool[]): readonly Finding[] {
  const silent = pools.flatMap((pool) => {
    const held = heldUpdates(pool).find(({ reason }) => reason === SLOT_UNKNOWN);
    if (held === undefined) return [];
    return failure(
      `pool ${pool.metadata.name}: the operator got no answer from the lock service ${url}: ${held.message}`,
      `correct --fleetlock-token-file or --fleetlock-ca-file of the operator, ${FIELD} of the pool, or what the message names`,
    );
  });
  const names = pools.map(({ metadata }) => metadata.name);
  const asks = `${noun(names.length, 'pool')} ${names.join(', ')}: the operator asks the lock service ${url}`;
  return silent.length > 0 ? silent : [ok(asks)];
}

import { formatDuration } from '../../api/duration.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { formatDriver } from '../../api/machine-owner.ts';
import { annotations } from '../../api/names.ts';
import { plural } from '../../api/plural.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { ONLY_CANARY, type Wave } from '../../api/pool-settings/values.ts';
import { dependencyProblems } from '../../rollout/gates/dependencies.ts';
import { windowState } from '../../rollout/gates/maintenance-windows.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { type PoolSettings, poolSettings } from '../../rollout/pools/pool-settings.ts';
import { triedChanges } from '../../view/pool-view.ts';

/** What a remark is about. */
interface Remarked {
  readonly pool: MachineConfigPool;
  readonly settings: PoolSettings;
  /** Of the cluster, after the change. */
  readonly pools: readonly MachineConfigPool[];
  /** ms since the epoch. */
  readonly now: number;
}

/** Each says why a rollout doesn't start at once, or not with every node; in the order in which they are printed. */
const REMARKS: readonly ((about: Remarked) => readonly string[])[] = [
  pausedRemarks,
  settingRemarks,
  drivenRemarks,
  rollbackRemarks,
  triedRemarks,
  domainRemarks,
  windowRemarks,
  dependencyRemarks,
  alertRemarks,
  queryRemarks,
  lockRemarks,
  waveRemarks,
  hookRemarks,
  rebootRemarks,
];

/**
 * @param now ms since the epoch.
 * @param pools of the cluster, after the change.
 * @returns why a rollout doesn't start at once, or not with every node, by the state of the pool; one line each.
 */
export function poolRemarks(
  pool: MachineConfigPool,
  now: number,
  pools: readonly MachineConfigPool[] = [],
): readonly string[] {
  const about = { pool, settings: poolSettings(pool, defaultRolloutOptions.pace), pools, now };
  return REMARKS.flatMap((remarks) => remarks(about));
}

function pausedRemarks({ pool }: Remarked): readonly string[] {
  return pool.spec.paused === true ? ['the pool is paused: no update starts until it is resumed'] : [];
}

function settingRemarks({ settings: { closed, problems, warnings } }: Remarked): readonly string[] {
  const why = closed === undefined || problems.length > 0 ? [] : [`no update starts: ${closed}`];
  return [...why, ...problems, ...warnings];
}

function drivenRemarks({ settings: { drivenBy } }: Remarked): readonly string[] {
  if (drivenBy === undefined) return [];
  return [
    `${formatDriver(drivenBy)} decides when nodes are updated: a node in service waits until its Machine is handed over (${annotations.clusterApiUpdate})`,
  ];
}

function rollbackRemarks({ settings: { rollback } }: Remarked): readonly string[] {
  if (rollback === undefined) return [];
  const held = rollback.image ?? rollback.config;
  return [
    `the pool is held at ${held} by a rollback until its target changes or shale rollback --clear is run`,
  ];
}

function rebootRemarks({ pool: { spec }, settings }: Remarked): readonly string[] {
  const { rebootPolicy, maxArmed = spec.maxUnavailable ?? 1 } = settings;
  if (rebootPolicy === 'Automatic') return [];
  const most =
    maxArmed === 1
      ? '1 node'
      : typeof maxArmed === 'number'
        ? `${maxArmed} nodes`
        : `${maxArmed} of the nodes`;
  return [
    `Shale reboots no node for an update: an update that needs a reboot is made the next boot of at most ${most} at a time, and applies when others reboot them; nodes in standard mode wait until ${fieldOf('rebootPolicy')} is removed`,
  ];
}

/** A plan is about what the MachineConfigs are now, which ends by itself. */
function triedRemarks({ pool }: Remarked): readonly string[] {
  const tried = triedChanges(pool);
  return tried === undefined ? [] : [tried];
}

function domainRemarks({ settings: { failureDomains } }: Remarked): readonly string[] {
  if (failureDomains === undefined) return [];
  const { topologyKey, maxUnavailable = 1 } = failureDomains;
  return [
    `at most ${maxUnavailable} of the nodes with the same ${topologyKey} ${maxUnavailable === 1 ? 'is' : 'are'} unavailable at a time`,
  ];
}

function windowRemarks({ settings, now }: Remarked): readonly string[] {
  const { maintenanceWindows, liveOutsideWindows } = settings;
  const window = maintenanceWindows && windowState(maintenanceWindows, now);
  if (window === undefined || window.open) return [];
  const which = liveOutsideWindows ? 'updates that drain or reboot wait' : 'updates wait';
  return [
    window.opensAt === undefined
      ? `${which} for a maintenance window, but none is scheduled`
      : `${which} for the maintenance window that opens at ${new Date(window.opensAt).toISOString()}`,
  ];
}

/** The change may also be about those pools: whatever their state is now, they are updated first. */
function dependencyRemarks({
  pool: { metadata },
  settings: { dependsOn },
  pools,
}: Remarked): readonly string[] {
  if (dependsOn.length === 0) return [];
  const problems = dependencyProblems(metadata.name, (name) =>
    pools.find((other) => other.metadata.name === name),
  );
  if (problems.length > 0) return problems;
  const [be, have] = dependsOn.length === 1 ? ['is', 'has'] : ['are', 'have'];
  return [
    `updates wait until ${plural(dependsOn.length, 'pool')} ${be} Updated and ${have} baked: ${dependsOn.join(', ')}`,
  ];
}

/** Only the operator reaches the Alertmanager: what fires now is in the pool's condition. */
function alertRemarks({ settings: { holdOnAlerts: alerts } }: Remarked): readonly string[] {
  if (alerts.kind !== 'named') return [];
  const sets = alerts.questions.map((set) => set.join(' and '));
  return [`updates wait while an alert is firing with ${sets.join(', or ')}`];
}

/** Nor does anybody else ask the Prometheus. */
function queryRemarks({ settings: { holdOnQueries: queries } }: Remarked): readonly string[] {
  if (queries.kind !== 'named') return [];
  return [`updates wait while a query of Prometheus has a result: ${queries.questions.join('; or ')}`];
}

function lockRemarks({ settings: { fleetLock } }: Remarked): readonly string[] {
  switch (fleetLock.kind) {
    case 'none':
      return [];
    case 'unreadable':
      return [`no node reboots: spec.shale.fleetLock can't be read`];
    case 'named': {
      const { url, group } = fleetLock.lock;
      return [`each node that reboots waits for a slot of group ${group} at the lock service ${url}`];
    }
  }
}

function waveRemarks({ settings: { waves, drivenBy } }: Remarked): readonly string[] {
  if (drivenBy !== undefined || waves.length === 0 || waves === ONLY_CANARY) return [];
  const total = waves.reduce((sum, { bake }) => sum + bake, 0);
  return [
    `the rollout takes at least ${formatDuration(total)}, in waves: it waits ${waves.map(formatWave).join(', then ')}`,
  ];
}

function hookRemarks({ settings }: Remarked): readonly string[] {
  const { before, after } = settings.hooks;
  const waits = [
    ...(before.length === 0 ? [] : [`before that until others clear ${formatHookNames(before)}`]),
    ...(after.length === 0 ? [] : [`cordoned after that until others clear ${formatHookNames(after)}`]),
  ];
  return waits.length === 0 ? [] : [`each node that is drained or rebooted waits ${waits.join(', and ')}`];
}

function formatHookNames(names: readonly string[]): string {
  return `${plural(names.length, 'hook')} (${names.join(', ')})`;
}

function formatWave({ nodes: { kind, value }, bake }: Wave): string {
  const count = kind === 'count' ? plural(value, 'node') : `${value}% of the nodes`;
  return `${formatDuration(bake)} after ${count}`;
}

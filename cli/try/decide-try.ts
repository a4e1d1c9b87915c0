import { isDeepStrictEqual } from 'node:util';
import { parseDeadline, parseRollback, type RollbackDeadline } from '../../api/annotation-requests.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';

/** A MachineConfig that is being tried. */
export interface TriedChange {
  /** Absent: there was none. */
  readonly before?: MachineConfig | undefined;
  /** To be written, and once it was written, what the API server made of it. */
  readonly after: MachineConfig;
}

/** What trying MachineConfigs does. */
export interface Try {
  readonly changes: readonly TriedChange[];
  /** Names of those that are so already. */
  readonly unchanged: readonly string[];
  /** Those that select what is changed, before or after: each gets the deadline. */
  readonly pools: readonly MachineConfigPool[];
}

/** @returns what is to be done, or why it is not. @param configs those of the cluster. */
export function decideTry(
  wanted: readonly MachineConfig[],
  configs: readonly MachineConfig[],
  pools: readonly MachineConfigPool[],
): Try | string {
  const current = new Map(configs.map((config) => [config.metadata.name, config]));
  const all = wanted.map((config) => changeTo(config, current.get(config.metadata.name)));
  const changes = all.filter(({ before, after }) => before === undefined || !isSameConfig(before, after));
  const touched = pools.filter((pool) =>
    changes.some(({ before, after }) => selectedConfigs(pool, before ? [before, after] : [after]).length > 0),
  );
  const refused = [...changes.flatMap(whyNotChange(pools)), ...touched.flatMap(whyNotPool)];
  if (refused.length > 0) return refused.join('\n  ');
  const unchanged = all.filter((each) => !changes.includes(each)).map(({ after }) => after.metadata.name);
  return { changes, unchanged, pools: touched };
}

/** The annotations of others stay. */
function changeTo(wanted: MachineConfig, before: MachineConfig | undefined): TriedChange {
  const { labels: _, ...own } = before?.metadata ?? { name: wanted.metadata.name };
  const kept = { ...before?.metadata.annotations, ...wanted.metadata.annotations };
  const metadata = { ...own, labels: wanted.metadata.labels, annotations: kept };
  return { before, after: { ...wanted, metadata } };
}

function isSameConfig(a: MachineConfig, b: MachineConfig): boolean {
  return (
    isDeepStrictEqual(a.metadata.labels ?? {}, b.metadata.labels ?? {}) && isDeepStrictEqual(a.spec, b.spec)
  );
}

function whyNotChange(pools: readonly MachineConfigPool[]) {
  return ({ before, after }: TriedChange): string[] => {
    const of = `MachineConfig ${after.metadata.name}:`;
    if (before?.metadata.annotations?.[annotations.generatedByController] !== undefined)
      return [`${of} a controller generates it; change what it is generated from`];
    const isSelected = pools.some(
      (pool) => selectedConfigs(pool, before ? [before, after] : [after]).length > 0,
    );
    return isSelected ? [] : [`${of} no pool selects it, so there is nothing to roll back`];
  };
}

function whyNotPool(pool: MachineConfigPool): string[] {
  const { name } = pool.metadata;
  const deadline = deadlineOf(pool);
  if (deadline === 'unreadable')
    return [`pool ${name}: its annotation ${annotations.rollbackDeadline} can't be read; remove it first`];
  if (deadline !== undefined) {
    const whose = deadline.by === '' ? '' : ` of ${deadline.by}`;
    return [
      `pool ${name}: a change${whose} is being tried until ${deadline.until}; confirm or cancel it first`,
    ];
  }
  return pool.spec.paused === true
    ? [`pool ${name} is paused, so its nodes would neither apply the change nor roll back; resume it first`]
    : [];
}

/** @returns the deadline in a pool's annotation; undefined without one. */
export function deadlineOf({
  metadata,
}: Pick<MachineConfigPool, 'metadata'>): RollbackDeadline | 'unreadable' | undefined {
  const text = metadata.annotations?.[annotations.rollbackDeadline];
  try {
    return text === undefined ? undefined : parseDeadline(text);
  } catch {
    return 'unreadable';
  }
}

/** @returns whether the pool is rolled back unless its change is confirmed. */
export function isTried({ metadata }: Pick<MachineConfigPool, 'metadata'>): boolean {
  return metadata.annotations?.[annotations.rollbackDeadline] !== undefined;
}

/** @returns the id of the deadline because of which a rollback holds the pool; undefined where none does. */
export function unconfirmedOf({ metadata }: Pick<MachineConfigPool, 'metadata'>): string | undefined {
  const text = metadata.annotations?.[annotations.rollback];
  try {
    return text === undefined ? undefined : parseRollback(text).unconfirmed;
  } catch {
    return undefined;
  }
}

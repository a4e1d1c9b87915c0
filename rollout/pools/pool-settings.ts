import {
  parseDeadline,
  parseRollback,
  type RollbackDeadline,
  type RollbackRequest,
} from '../../api/annotation-requests.ts';
import { annotations } from '../../api/names.ts';
import { readSettings, type SetPool } from '../../api/pool-settings/read-settings.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import { formatSchemaError } from '../../api/schema-message.ts';
import type { PaceOptions } from '../options.ts';
import type { Hooks } from './hooks.ts';

/** What an admin has set for one pool (api/pool-settings/table.ts), with the operator's own settings behind. */
export interface PoolSettings extends Omit<SettingValues, 'hooksBefore' | 'hooksAfter'> {
  /** What others clear on a node before it is drained, and before it is schedulable again. */
  readonly hooks: Hooks;
  readonly rollback: RollbackRequest | undefined;
  /** When the pool is rolled back unless its change is confirmed. */
  readonly deadline: RollbackDeadline | 'unreadable' | undefined;
  /** Why no update may start, if a setting can't be read for which no value is safe. */
  readonly closed: string | undefined;
  /** Why the nodes of every pool stay as they are; absent: they are updated. */
  readonly suspended?: string | undefined;
  /** What can't be read, each with what is wrong and what applies instead. */
  readonly problems: readonly string[];
  /** Annotations of the pool without effect, and those that a later version won't read. */
  readonly warnings: readonly string[];
}

/** Reads a pool's settings and the requests on it. */
export function poolSettings(
  pool: SetPool,
  pace: Pick<PaceOptions, 'soakSeconds' | 'failureThreshold' | 'unhealthyAfterSeconds'>,
): PoolSettings {
  const { failureThreshold } = pace;
  const [soak, unhealthyAfter] = [pace.soakSeconds * 1000, pace.unhealthyAfterSeconds * 1000];
  const { values, closed, problems, warnings } = readSettings(pool, {
    soak,
    unhealthyAfter,
    failureThreshold,
  });
  const { hooksBefore, hooksAfter, ...others } = values;
  const rollback = readRequest(pool, annotations.rollback, parseRollback);
  const deadline = readRequest(pool, annotations.rollbackDeadline, parseDeadline);
  return {
    ...others,
    hooks: { before: hooksBefore, after: hooksAfter },
    rollback: rollback.value,
    deadline: deadline.closed === undefined ? deadline.value : 'unreadable',
    closed: rollback.closed ?? deadline.closed ?? closed,
    problems: [...[rollback, deadline].flatMap(({ problem }) => problem ?? []), ...problems],
    warnings,
  };
}

/** Fields of the spec of each MachineConfigNode of a pool that are settings of the pool; undefined is absent. */
export interface AssignedSettings {
  readonly softReboot: true | undefined;
  readonly rebootSentinel: string | undefined;
}

/** @returns the settings that each node of the pool gets along with its target. */
export function assignedSettings({
  softReboot,
  rebootSentinel,
}: Pick<PoolSettings, keyof AssignedSettings>): AssignedSettings {
  return { softReboot: softReboot || undefined, rebootSentinel };
}

interface Read<T> {
  readonly value: T | undefined;
  readonly problem?: string;
  readonly closed?: string | undefined;
}

/** No value of a request is safe: where one can't be read, no update starts. */
function readRequest<T>({ metadata }: SetPool, name: string, parse: (text: string) => T): Read<T> {
  const text = metadata.annotations?.[name];
  if (text === undefined) return { value: undefined };
  const closed = `annotation ${name} can't be read`;
  try {
    return { value: parse(text) };
  } catch (error) {
    return {
      value: undefined,
      closed,
      problem: `${closed}, so no update starts: ${formatSchemaError(error)}`,
    };
  }
}

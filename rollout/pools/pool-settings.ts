import { z } from 'zod';
import {
  parseDeadline,
  parseRollback,
  type RollbackDeadline,
  type RollbackRequest,
} from '../../api/annotation-requests.ts';
import { errorMessage } from '../../api/error-message.ts';
import { LONGEST_SENTINEL } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { parseMaxUnavailable } from '../../api/max-unavailable.ts';
import { annotations } from '../../api/names.ts';
import { type AlertHold, parseAlertHold } from '../gates/alerts.ts';
import { dependsOn } from '../gates/dependencies.ts';
import { type MaintenanceWindow, parseWindows } from '../gates/maintenance-windows.ts';
import { parseQueryHold, type QueryHold } from '../gates/queries.ts';
import { ONLY_CANARY, parseWaves, type Wave } from '../gates/waves.ts';
import type { RolloutOptions } from '../options.ts';
import { type Hooks, parseHooks } from './hooks.ts';

/** What an admin has set for one pool by its annotations (api/names.ts), with the operator's own settings behind. */
export interface PoolSettings {
  /** Updates start only in one of these; undefined: at any time. */
  readonly windows: readonly MaintenanceWindow[] | undefined;
  readonly liveOutsideWindows: boolean;
  /** Nodes that others cordoned are updated, too. */
  readonly updateCordoned: boolean;
  /** Pools that have to be Updated before a node of this one starts. */
  readonly dependsOn: readonly string[];
  /** Alerts that hold updates back. */
  readonly alerts: AlertHold;
  /** Queries that hold updates back. */
  readonly queries: QueryHold;
  /** In this order; none: no node waits for others to bake. */
  readonly waves: readonly Wave[];
  /** ms for which a live update must have held before it counts as proof; Infinity: none ever counts. */
  readonly soak: number;
  readonly failureThreshold: RolloutOptions['failureThreshold'];
  /** ms that a node may be down after its update before it counts as failed. */
  readonly unhealthyAfter: number;
  readonly autoRollback: boolean;
  /** Nodes may reboot without their kernel where bootc says that they can. */
  readonly softReboot: boolean;
  /** The file on a host whose appearance requests a reboot of the node; undefined: none does. */
  readonly rebootSentinel: string | undefined;
  /** Who reboots nodes for a target that requires it: Shale, or somebody else at some time. */
  readonly reboots: RebootPolicy;
  /** How many nodes may have a target as their next boot at once, as `maxUnavailable`; undefined: as many as that. */
  readonly maxArmed: number | string | undefined;
  /** While the pool is paused, its nodes stage the target, and wait. */
  readonly prefetch: boolean;
  /** What others clear on a node before it is drained, and before it is schedulable again. */
  readonly hooks: Hooks;
  readonly rollback: RollbackRequest | undefined;
  /** When the pool is rolled back unless its change is confirmed. */
  readonly deadline: RollbackDeadline | 'unreadable' | undefined;
  /** Why no update may start, if a setting can't be read for which no value is safe. */
  readonly closed: string | undefined;
  /** Why the nodes of every pool stay as they are; absent: they are updated. */
  readonly suspended?: string;
  /** Annotations that can't be read, each with what is wrong and what applies instead. */
  readonly problems: readonly string[];
}

export type RebootPolicy = 'Automatic' | 'AtNextReboot';

const Seconds = z.coerce.number().int().min(0).max(604_800);
const Threshold = z.strictObject({ canary: z.int().min(1), after: z.int().min(1) });

/** Reads a pool's settings. One that can't be read is replaced by the value that disrupts least, and reported. */
export function poolSettings(
  pool: Pick<MachineConfigPool, 'metadata'> & Partial<Pick<MachineConfigPool, 'spec'>>,
  options: Pick<RolloutOptions, 'soakSeconds' | 'failureThreshold' | 'unhealthyAfterSeconds'>,
): PoolSettings {
  const problems: string[] = [];
  const read = annotationReader(pool.metadata.annotations ?? {}, problems);
  const requests = readRequests(read);
  const closed = requests.closed ?? closedByLimit(pool.spec?.maxUnavailable, problems);
  return {
    dependsOn: dependsOn(pool),
    ...requests,
    closed,
    ...readHolds(read),
    ...readPace(read, options),
    ...readReboots(read),
    problems,
  };
}

/** Reads one annotation. @returns what it says; `unset` without it, `careful.value` where it can't be read. */
type ReadAnnotation = <T>(
  name: string,
  parse: (text: string) => T,
  unset: T,
  careful: { readonly value: T; readonly words: string },
) => T;

/** @param problems gets a sentence for each annotation that can't be read. */
function annotationReader(own: Readonly<Record<string, string>>, problems: string[]): ReadAnnotation {
  return (name, parse, unset, careful) => {
    const text = own[name];
    if (text === undefined) return unset;
    try {
      return parse(text);
    } catch (error) {
      problems.push(`annotation ${name} can't be read, so ${careful.words}: ${reasonOf(error)}`);
      return careful.value;
    }
  };
}

/**
 * @param problems gets a sentence where it can't be read. @returns why no update starts: MCO starts none with a
 * negative one either.
 */
function closedByLimit(setting: number | string | undefined, problems: string[]): string | undefined {
  const limit = parseMaxUnavailable(setting);
  if (limit !== undefined)
    return limit.value < 0 ? `spec.maxUnavailable is ${setting}, so no update starts` : undefined;
  problems.push(
    `spec.maxUnavailable ${JSON.stringify(setting)} can't be read, so one node is unavailable at a time: expected a number, or a percentage such as "20%"`,
  );
  return undefined;
}

/** Those for which no value is safe: where one can't be read, no update starts. */
function readRequests(
  read: ReadAnnotation,
): Pick<PoolSettings, 'rollback' | 'deadline' | 'hooks' | 'closed'> {
  const words = 'no update starts';
  const rollback = read<RollbackRequest | 'unreadable' | undefined>(
    annotations.rollback,
    parseRollback,
    undefined,
    { value: 'unreadable', words },
  );
  const deadline = read<PoolSettings['deadline']>(annotations.rollbackDeadline, parseDeadline, undefined, {
    value: 'unreadable',
    words,
  });
  const readHooks = (name: string) =>
    read<readonly string[] | undefined>(name, parseHooks, [], { value: undefined, words });
  const before = readHooks(annotations.hooksBefore);
  const after = readHooks(annotations.hooksAfter);
  const [unreadable] = [
    ...(rollback === 'unreadable' ? [annotations.rollback] : []),
    ...(deadline === 'unreadable' ? [annotations.rollbackDeadline] : []),
    ...(before === undefined ? [annotations.hooksBefore] : []),
    ...(after === undefined ? [annotations.hooksAfter] : []),
  ];
  return {
    rollback: rollback === 'unreadable' ? undefined : rollback,
    deadline,
    hooks: { before: before ?? [], after: after ?? [] },
    closed: unreadable === undefined ? undefined : `annotation ${unreadable} can't be read`,
  };
}

/** When updates may start. */
function readHolds(
  read: ReadAnnotation,
): Pick<PoolSettings, 'windows' | 'liveOutsideWindows' | 'updateCordoned' | 'alerts' | 'queries'> {
  return {
    windows: read(annotations.maintenanceWindows, parseWindows, undefined, {
      value: [],
      words: 'no window opens',
    }),
    liveOutsideWindows: read(annotations.liveOutsideWindows, parseFlag, false, {
      value: false,
      words: 'live updates wait for a window too',
    }),
    updateCordoned: read(annotations.updateCordoned, parseFlag, false, {
      value: false,
      words: 'nodes that others cordoned are left alone',
    }),
    alerts: read<AlertHold>(
      annotations.holdOnAlerts,
      parseAlertHold,
      { kind: 'none' },
      { value: { kind: 'unreadable' }, words: 'updates wait as if an alert were firing' },
    ),
    queries: read<QueryHold>(
      annotations.holdOnQueries,
      parseQueryHold,
      { kind: 'none' },
      { value: { kind: 'unreadable' }, words: 'updates wait as if a query had a result' },
    ),
  };
}

/** How fast a rollout goes, and what stops it or rolls it back. */
function readPace(
  read: ReadAnnotation,
  options: Pick<RolloutOptions, 'soakSeconds' | 'failureThreshold' | 'unhealthyAfterSeconds'>,
): Pick<PoolSettings, 'waves' | 'soak' | 'failureThreshold' | 'unhealthyAfter' | 'autoRollback'> {
  return {
    waves: read<readonly Wave[]>(annotations.waves, parseWaves, [], {
      value: ONLY_CANARY,
      words: 'no node follows the first one',
    }),
    soak: read(annotations.soakSeconds, parseSeconds, options.soakSeconds * 1000, {
      value: Number.POSITIVE_INFINITY,
      words: 'live updates go one node at a time',
    }),
    failureThreshold: read(annotations.failureThreshold, parseThreshold, options.failureThreshold, {
      value: { unproven: 1, proven: 1 },
      words: 'one failed node stops a rollout',
    }),
    unhealthyAfter: read(
      annotations.unhealthyAfterSeconds,
      parseSeconds,
      options.unhealthyAfterSeconds * 1000,
      {
        // No time at all would take every reboot for a failure.
        value: options.unhealthyAfterSeconds * 1000,
        words: `a node may be down for ${options.unhealthyAfterSeconds} s after its update`,
      },
    ),
    autoRollback: read(annotations.autoRollback, parseFlag, false, {
      value: false,
      words: 'nothing is rolled back automatically',
    }),
  };
}

/** How nodes reboot, and what they do before. */
function readReboots(
  read: ReadAnnotation,
): Pick<PoolSettings, 'reboots' | 'maxArmed' | 'softReboot' | 'rebootSentinel' | 'prefetch'> {
  return {
    reboots: read<RebootPolicy>(annotations.rebootPolicy, parseRebootPolicy, 'Automatic', {
      value: 'AtNextReboot',
      words: 'Shale reboots no node',
    }),
    maxArmed: read<number | string | undefined>(annotations.maxArmed, parseCount, undefined, {
      value: 1,
      words: 'one node is armed at a time',
    }),
    softReboot: read(annotations.softReboot, parseFlag, false, {
      value: false,
      words: 'every reboot is a full reboot',
    }),
    rebootSentinel: read<string | undefined>(annotations.rebootRequired, parseSentinel, undefined, {
      value: undefined,
      words: 'no file on a node requests a reboot',
    }),
    prefetch: read(annotations.prefetch, parseFlag, false, {
      value: false,
      words: 'nothing is staged while the pool is paused',
    }),
  };
}

/** Where Debian, Ubuntu and those who follow them have it. */
const DEFAULT_SENTINEL = '/var/run/reboot-required';

function parseSentinel(text: string): string {
  if (text === 'true') return DEFAULT_SENTINEL;
  const isPath = /^(?:\/[A-Za-z0-9_.-]+)+$/.test(text) && !text.split('/').includes('..');
  if (!isPath || text.length > LONGEST_SENTINEL)
    throw new Error(`expected "true" or the absolute path of a file, not ${JSON.stringify(text)}`);
  return text;
}

function parseRebootPolicy(text: string): RebootPolicy {
  if (text !== 'Automatic' && text !== 'AtNextReboot')
    throw new Error(`expected "Automatic" or "AtNextReboot", not ${JSON.stringify(text)}`);
  return text;
}

/** @returns a number or a percentage, as max-unavailable.ts reads them. */
function parseCount(text: string): number | string {
  const [, count, percent] = /^(?:([1-9]\d{0,4})|((?:[1-9]\d?|100)%))$/.exec(text.trim()) ?? [];
  if (count !== undefined) return Number(count);
  if (percent !== undefined) return percent;
  throw new Error(`expected a number from 1, or a percentage such as "20%", not ${JSON.stringify(text)}`);
}

function parseFlag(text: string): boolean {
  if (text !== 'true' && text !== 'false')
    throw new Error(`expected "true" or "false", not ${JSON.stringify(text)}`);
  return text === 'true';
}

/** @returns ms. Zod would take an empty text for 0. */
function parseSeconds(text: string): number {
  return Seconds.parse(text.trim() === '' ? 'nothing' : text) * 1000;
}

function parseThreshold(text: string): RolloutOptions['failureThreshold'] {
  const { canary, after } = Threshold.parse(JSON.parse(text));
  return { unproven: canary, proven: after };
}

/** In one line: conditions are read in tables. */
function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues.map(({ path, message }) => [...path, message].join(' ')).join(', ');
  }
  return errorMessage(error);
}

import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { parseDuration } from '../command-line/quantities.ts';

const Flag = z.object({
  reason: z.string().default(''),
  /** Who is at work on the node. */
  by: z.string().default(''),
  /** RFC 3339; absent: until the annotation is taken away. */
  until: z.string().exactOptional(),
  /** Written by `shale maintenance start` with its cordon: whether the node was schedulable before. */
  uncordon: z.boolean().exactOptional(),
});
/** The annotation by which a Node is flagged for maintenance. A rollout passes it by (rollout/pools/node-state.ts). */
export type MaintenanceFlag = z.infer<typeof Flag>;

const HOLDER_PREFIX = 'shale-maintenance/';

/** @returns the name under which somebody at work on a node holds its lease. */
export function maintenanceHolder(by: string): string {
  return `${HOLDER_PREFIX}${by}`;
}

/** @returns whether a node lease is held by a maintenance, whoever's. */
export function isMaintenanceHolder(holder: string): boolean {
  return holder.startsWith(HOLDER_PREFIX);
}

/** @returns the flag of a Node; an empty one where it can't be read, because somebody meant something; undefined without. */
export function flagOf({ metadata }: Node): MaintenanceFlag | undefined {
  const text = metadata.annotations?.[annotations.plannedMaintenance];
  if (text === undefined) return undefined;
  try {
    return Flag.parse(JSON.parse(text));
  } catch {
    return { reason: '', by: '' };
  }
}

/** @returns the annotation's value. */
export function flagText(flag: MaintenanceFlag): string {
  return JSON.stringify(flag);
}

/**
 * Reads until when a maintenance may last: a span from now (`4h`) or a time (RFC 3339).
 *
 * @param now ms since the epoch.
 * @returns ms since the epoch, after now. @throws InvalidArgumentError.
 */
export function parseUntil(text: string, now: number): number {
  const time = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : now + parseDuration(text);
  if (Number.isNaN(time))
    throw new InvalidArgumentError('a time such as 2026-12-24T18:00:00Z, or a duration such as 4h');
  if (time <= now) throw new InvalidArgumentError('a time in the future');
  return time;
}

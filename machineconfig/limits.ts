import { z } from 'zod';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';

const Recorded = z.object({ fileBytes: z.int().positive(), configBytes: z.int().positive() });

/** @returns what a rendered config records of limits that are not the default ones, for who reads it later. */
export function recordLimits({ fileBytes, configBytes }: Limits): Readonly<Record<string, string>> {
  if (fileBytes === DEFAULT_LIMITS.fileBytes && configBytes === DEFAULT_LIMITS.configBytes) return {};
  return { [annotations.limits]: JSON.stringify({ fileBytes, configBytes }) };
}

/**
 * @returns the limits that a config was rendered with; the default ones for a record that can't be read. Who may write a
 *   rendered config may write anything on a node, so the record gives nobody more than they have.
 */
export function recordedLimits({ metadata }: MachineConfig): Limits {
  const text = metadata.annotations?.[annotations.limits];
  if (text === undefined) return DEFAULT_LIMITS;
  try {
    return Recorded.parse(JSON.parse(text));
  } catch {
    return DEFAULT_LIMITS;
  }
}

const MIB = 1024 * 1024;

/** @returns limits in bytes; the default ones where nothing is given. @param given in MiB. */
export function limitsInMiB(given: {
  readonly file?: number | undefined;
  readonly config?: number | undefined;
}): Limits {
  return {
    fileBytes: given.file === undefined ? DEFAULT_LIMITS.fileBytes : given.file * MIB,
    configBytes: given.config === undefined ? DEFAULT_LIMITS.configBytes : given.config * MIB,
  };
}

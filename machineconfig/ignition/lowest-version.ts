import { isDeepStrictEqual } from 'node:util';
import type { IgnitionConfig } from './config.ts';
import { IGNITION_VERSION, parseIgnition } from './parse.ts';

/** Every Ignition in use reads 3.2.0 (2.7 of 2020); each next one is read by fewer. */
const VERSIONS = ['3.2.0', '3.3.0', '3.4.0'] as const;

/**
 * Finds the version by which a config can be read by as many releases of Ignition as possible: a release refuses a
 * version that is newer than itself, also if nothing new is in the config. Machines may boot an image that is years
 * old.
 *
 * @param config a valid one.
 * @returns the lowest version, from 3.2.0, in which the config means the same.
 */
export function lowestIgnitionVersion(config: IgnitionConfig): string {
  const as = (version: string) => parseIgnition({ ...config, ignition: { ...config.ignition, version } });
  const meant = as(IGNITION_VERSION);
  const isEnough = (version: string) => {
    const read = as(version);
    return read.ok && meant.ok && isDeepStrictEqual(read.config, meant.config);
  };
  return VERSIONS.find(isEnough) ?? IGNITION_VERSION;
}

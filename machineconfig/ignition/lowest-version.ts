import { isDeepStrictEqual } from 'node:util';
import type { IgnitionConfig } from './config.ts';
import { IGNITION_VERSION, parseIgnition } from './parse.ts';

/** Every Ignition in use reads 3.2.0 (2.7 of 2020); each next one is read by fewer. */
const VERSIONS = ['3.2.0', '3.3.0', '3.4.0'] as const;

/**
 * Finds the version by which a config can be read by as many releases of Ignition as possible: a release refuses a version that
 * is newer than itself, also if nothing new is in the config. Machines may boot an image that is years old.
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
  const least = leastForValues(config);
  return VERSIONS.find((version) => version >= least && isEnough(version)) ?? IGNITION_VERSION;
}

/** Of values that a field takes only since a later version than its own (Ignition, "Upgrading Configs"). */
function leastForValues({ storage: { filesystems = [], luks = [] } = {} }: IgnitionConfig): string {
  // An ARN names an access point of S3.
  if (luks.some(({ keyFile }) => keyFile?.source?.startsWith('arn:') === true)) return '3.4.0';
  return filesystems.some(({ format }) => format === 'none') ? '3.3.0' : '3.2.0';
}

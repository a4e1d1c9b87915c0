import { pathsRecord } from './managed-paths.ts';

/**
 * The paths outside of /etc and /usr, which no image carries and every image shares, that configs have put on this
 * node, each with the digests of what was rendered. What is on record and in no config any more is taken away by it,
 * after a live apply and a reboot, a rollback and the way out of layering.
 */
export const { read: readStatePaths, write: writeStatePaths } = pathsRecord('state-paths.json');

/**
 * @param name absolute and without links: where a host has /usr/local in /var, it is not below /usr.
 * @returns whether a path lies outside of /etc and /usr.
 */
export function isStatePath(name: string): boolean {
  return !/^\/(etc|usr)(\/|$)/.test(name);
}

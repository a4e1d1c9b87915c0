import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { type ManagedPaths, readPathsIn, writePathsIn } from './managed-paths.ts';

/**
 * The paths outside of /etc and /usr, which no image carries and every image shares, that configs have put on this node, each
 * with the digests of what was rendered. What is on record and in no config any more is taken away by it, after a live apply
 * and a reboot, a rollback and the way out of layering.
 *
 * @param root the running root. @returns the record; undefined when none was written yet. @throws RecordError
 */
export function readStatePaths(root: string): Promise<ManagedPaths | undefined> {
  return readPathsIn(fileIn(root));
}

/** Writes the record, whole or not at all, and durably. @param root the running root. */
export function writeStatePaths(root: string, paths: ManagedPaths): Promise<void> {
  return writePathsIn(fileIn(root), paths);
}

/**
 * @param name absolute and without links: where a host has /usr/local in /var, it is not below /usr.
 * @returns whether a path lies outside of /etc and /usr.
 */
export function isStatePath(name: string): boolean {
  return !/^\/(etc|usr)(\/|$)/.test(name);
}

function fileIn(root: string): string {
  return path.join(root, nodePaths.state, 'state-paths.json');
}

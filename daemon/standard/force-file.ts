import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';

/** @returns where the file lies by which an admin gives leave to overwrite. @param root the running root. */
export function forceFileIn(root: string): string {
  return path.join(root, nodePaths.forceFile);
}

/** @returns whether leave is given. */
export async function isForced(root: string): Promise<boolean> {
  return (await stat(forceFileIn(root)).catch(ignoreMissing)) !== undefined;
}

/** Leave is for one write: it ends with it (MCO removes the file as well). */
export async function endForce(root: string): Promise<void> {
  await rm(forceFileIn(root), { force: true });
}

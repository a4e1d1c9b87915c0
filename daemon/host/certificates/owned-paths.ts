import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { MachineConfig } from '../../../api/machine-config.ts';
import { nodePaths } from '../../../api/names.ts';
import type { NodeConfig } from '../../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../../machineconfig/parse-node-config.ts';
import type { DaemonObservation } from '../../decide.ts';
import type { Current } from '../../records/current.ts';
import { nodeConfigOf } from '../../records/rendered-config.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';

/**
 * @param root the running root.
 * @returns the files and links of the config that a node runs and of the one that it is on the way to, whose files may be
 *   there already.
 */
export async function pathsOfConfigs(
  root: string,
  { current, journal }: Pick<DaemonObservation, 'current' | 'journal'>,
): Promise<ReadonlySet<string>> {
  return new Set([...(await pathsOfState(root, current)), ...(await pathsOfState(root, journal?.next))]);
}

async function pathsOfState(root: string, current: Current | undefined): Promise<ReadonlySet<string>> {
  switch (current?.mode) {
    case undefined:
      return new Set();
    case 'Standard':
      return pathsOf(nodeConfigOf(current.rendered));
    case 'Layered':
      return pathsOfImage(root);
  }
}

/** @returns those of the config that an image carries; none for an image that was not made of one. @param root of the image. */
export async function pathsOfImage(root: string): Promise<ReadonlySet<string>> {
  const text = await readFile(path.join(root, nodePaths.imageConfig), 'utf8').catch(ignoreMissing);
  if (text === undefined) return new Set();
  const parsed = parseNodeConfig(JSON.parse(text) as MachineConfig);
  return parsed.ok ? pathsOf(parsed.config) : new Set();
}

function pathsOf({ files, links }: NodeConfig): ReadonlySet<string> {
  return new Set([...files.keys(), ...links.keys()]);
}

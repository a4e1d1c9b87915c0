import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { MachineConfig } from '../../api/machine-config.ts';
import { nodePaths } from '../../api/names.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { ignoreMissing } from '../files/tree-entry.ts';

/**
 * @param root of an image: a deployment's, or the running root.
 * @returns the rendered config that the image was made of; undefined for an image that was made of none.
 */
export async function readImageConfig(root: string): Promise<NodeConfig | undefined> {
  const text = await readFile(path.join(root, nodePaths.imageConfig), 'utf8').catch(ignoreMissing);
  if (text === undefined) return undefined;
  const parsed = parseNodeConfig(JSON.parse(text) as MachineConfig);
  return parsed.ok ? parsed.config : undefined;
}

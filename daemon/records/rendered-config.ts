import { MachineConfigs } from '../../api/machine-config.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { emptyNodeConfig } from '../../machineconfig/empty-config.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { PrepareRefused } from '../steps/prepare-error.ts';
import type { Current, Rendered } from './current.ts';

/**
 * Fetches a rendered config, without what the API server adds to it.
 *
 * @throws ApiError
 */
export async function fetchRendered(client: ApiClient, name: string, signal: AbortSignal): Promise<Rendered> {
  const { apiVersion, spec } = await client.get(MachineConfigs, name, { signal });
  return { apiVersion, kind: 'MachineConfig', metadata: { name }, spec };
}

/**
 * @returns what a rendered config means on the node's disk.
 * @throws PrepareRefused when it can't be read; the message names each problem, and no contents.
 */
export function nodeConfigOf(rendered: Rendered): NodeConfig {
  const parsed = parseNodeConfig(rendered);
  if (parsed.ok) return parsed.config;
  throw new PrepareRefused(`${rendered.metadata.name}: ${parsed.problems.map(formatProblem).join('; ')}`);
}

/**
 * @returns what standard mode has written to the node's disk: nothing, unless the node is in standard mode.
 * @throws PrepareRefused
 */
export function writtenConfigOf(current: Current | undefined): NodeConfig {
  return current?.mode === 'Standard' ? nodeConfigOf(current.rendered) : emptyNodeConfig;
}

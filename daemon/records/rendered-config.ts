import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import type { Current, Rendered } from './current.ts';

/** The target can't be prepared as things are: what has to change is in the message. It is tried again. */
export class PrepareRefused extends Error {
  override readonly name = 'PrepareRefused';
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

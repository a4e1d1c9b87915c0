import { type Command, InvalidArgumentError, Option } from 'commander';
import { errorMessage } from '../../api/error-message.ts';
import { type LabelSelector, matchesSelector, parseLabelSelector } from '../../api/label-selector.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';

/** Flags of commands that list nodes. */
export interface SelectorFlags {
  readonly selector?: LabelSelector;
}

/** @returns the command with `-l`, as kubectl has it. */
export function withSelector(command: Command, description: string): Command {
  return command.addOption(
    new Option('-l, --selector <labels>', `${description}, such as zone=a,role!=infra`).argParser(selectorOf),
  );
}

function selectorOf(text: string): LabelSelector {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

/** @param cluster as `selected` returns it. @returns what to say where a selector matches no node. */
export function selectsNothing(cluster: ObservedCluster, selector: LabelSelector | undefined): string[] {
  return selector === undefined || cluster.nodes.length > 0 ? [] : ['no node has the labels of --selector'];
}

/**
 * @param selector of the labels of Nodes; undefined: all of them.
 * @returns the cluster as if it had no other nodes, and no pools and builds without a node.
 */
export function selected(cluster: ObservedCluster, selector: LabelSelector | undefined): ObservedCluster {
  if (selector === undefined) return cluster;
  const nodes = cluster.nodes.filter(({ metadata }) => matchesSelector(selector, metadata.labels ?? {}));
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  const machineConfigNodes = cluster.machineConfigNodes.filter(({ metadata }) => names.has(metadata.name));
  const pools = new Set(machineConfigNodes.map(({ spec }) => spec.pool.name));
  return {
    ...cluster,
    nodes,
    machineConfigNodes,
    pools: cluster.pools.filter(({ metadata }) => pools.has(metadata.name)),
    // A MachineOSConfig has the name of its pool.
    builds: cluster.builds.filter(({ spec }) => pools.has(spec.machineOSConfig.name)),
  };
}

import type { Node } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';

/** What the nodes of a cluster run, and what was built for them. */
export interface ClusterState {
  /** The rendered configs, by name. */
  readonly rendered: ReadonlyMap<string, MachineConfig>;
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  /** Of every pool; empty when the user is not allowed to list them. */
  readonly builds: readonly MachineOSBuild[];
}

/** @returns those objects that are MachineConfigs. */
export function machineConfigsOf(objects: readonly KubernetesObject[]): readonly MachineConfig[] {
  return objects.filter(({ kind }) => kind === MachineConfigs.kind) as MachineConfig[];
}

/** @returns undefined for a config that is gone or can't be read: its nodes reboot. */
export function readableNodeConfig(config: MachineConfig | undefined): NodeConfig | undefined {
  const parsed = config === undefined ? undefined : parseNodeConfig(config);
  return parsed?.ok === true ? parsed.config : undefined;
}

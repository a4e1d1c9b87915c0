import { z } from 'zod';
import { Conditions, type Kind, type KubernetesObject, LabelSelector, ObservedGeneration } from './object.ts';

const ConfigurationSource = z.object({
  apiVersion: z.string().exactOptional().describe('Always that of MachineConfigs.'),
  kind: z.string().exactOptional().describe('Always MachineConfig.'),
  name: z.string().exactOptional().describe('Name of the MachineConfig.'),
});

const PoolConfiguration = z.object({
  name: z.string().exactOptional().describe('Name of the rendered MachineConfig.'),
  source: z
    .array(ConfigurationSource)
    .exactOptional()
    .describe('The MachineConfigs that were merged into it, in merge order.'),
});
export type PoolConfiguration = z.infer<typeof PoolConfiguration>;

export const MachineConfigPoolSpec = z.object({
  machineConfigSelector: LabelSelector.exactOptional().describe(
    'The MachineConfigs of this pool, by their labels.',
  ),
  nodeSelector: LabelSelector.exactOptional().describe('The nodes of this pool, by their labels.'),
  paused: z
    .boolean()
    .exactOptional()
    .describe('While true no node of the pool is given a new configuration. Certificates still arrive.'),
  maxUnavailable: z
    .union([z.int(), z.string()])
    .meta({ 'x-kubernetes-int-or-string': true })
    .exactOptional()
    .describe(
      'How many nodes may be unavailable at once, as a number or a percentage (rounded down, at least 1). Default 1.',
    ),
  configuration: PoolConfiguration.exactOptional().describe(
    'The rendered config the pool goes to. Written by the operator.',
  ),
});

export const MachineConfigPoolStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  configuration: PoolConfiguration.exactOptional().describe(
    'The rendered config that every node of the pool has taken.',
  ),
  machineCount: z.int().exactOptional().describe('Nodes in the pool.'),
  updatedMachineCount: z.int().exactOptional().describe('Nodes that run what the pool asks for.'),
  readyMachineCount: z.int().exactOptional().describe('Updated nodes that are Ready.'),
  unavailableMachineCount: z
    .int()
    .exactOptional()
    .describe('Nodes that are not Ready, cordoned, or being updated.'),
  degradedMachineCount: z.int().exactOptional().describe('Nodes whose update failed.'),
  architectures: z
    .array(z.string())
    .max(10)
    .exactOptional()
    .describe(
      "Shale's own: the architectures of the pool's nodes, in Go's words; the pool's image is made for each.",
    ),
  conditions: Conditions.exactOptional(),
});
export type MachineConfigPoolStatus = z.infer<typeof MachineConfigPoolStatus>;

/** The nodes that share one configuration. */
export interface MachineConfigPool extends KubernetesObject {
  readonly spec: z.infer<typeof MachineConfigPoolSpec>;
  readonly status?: MachineConfigPoolStatus;
}

export const MachineConfigPools: Kind<MachineConfigPool> = {
  group: 'machineconfiguration.openshift.io',
  version: 'v1',
  kind: 'MachineConfigPool',
  plural: 'machineconfigpools',
  namespaced: false,
};

/** Condition types of a pool: MCO's, and MCO's build conditions of a layered pool. */
export type PoolConditionType =
  | 'Updated'
  | 'Updating'
  | 'Degraded'
  | 'RenderDegraded'
  | 'NodeDegraded'
  | 'BuildPending'
  | 'Building'
  | 'BuildSuccess'
  | 'BuildFailed';

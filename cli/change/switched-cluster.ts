import type { ConfigMap } from '../../api/kubernetes.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { decideMachineOSConfigs } from '../../opt-in/machine-os-configs.ts';
import { readSwitch, type SwitchState } from '../../opt-in/switch.ts';
import type { OfflineCluster } from '../../predict/objects/offline-cluster.ts';

/** @returns the cluster with the MachineOSConfigs that the operator makes of the layering switch. */
export function switchedBy(cluster: OfflineCluster, state: SwitchState): OfflineCluster {
  const { pools, machineOSConfigs } = cluster;
  const changes = decideMachineOSConfigs(state, pools, machineOSConfigs);
  // What the API server adds to an object that is created decides nothing.
  const written = [...changes.replace, ...(changes.create as readonly MachineOSConfig[])];
  const isGone = ({ metadata }: MachineOSConfig) =>
    [...changes.delete, ...changes.replace].some(({ metadata: { name } }) => name === metadata.name);
  return {
    ...cluster,
    machineOSConfigs: [...machineOSConfigs.filter((config) => !isGone(config)), ...written],
  };
}

/**
 * @param objects that the cluster was made of. @returns the cluster, switched if the layering switch is one of them.
 */
export function withSwitch(cluster: OfflineCluster, objects: readonly KubernetesObject[]): OfflineCluster {
  const isSwitch = ({ kind, metadata }: KubernetesObject) =>
    kind === 'ConfigMap' && metadata.name === SWITCH_CONFIG_MAP;
  const found = objects.findLast(isSwitch);
  return found === undefined ? cluster : switchedBy(cluster, readSwitch(found as ConfigMap));
}

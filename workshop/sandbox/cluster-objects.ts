import { MCO_GROUP } from '../../api/described-labels.ts';
import type { ConfigMap, Deployment, Node, PodDisruptionBudget } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { DEFAULT_NAMESPACE, labels, REGISTRY_CAS_CONFIG_MAP } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { DigestedPullspec } from '../../api/references.ts';

/** What the sandbox's cluster has beside Shale: nodes, pools, the OS image they come with, and something to drain. */

/** The machines, with the roles that their Nodes are labelled with. */
export const MACHINES = [
  { name: 'worker-0', roles: ['worker'] },
  { name: 'worker-1', roles: ['worker'] },
  { name: 'worker-2', roles: ['worker'] },
  // A node of a custom pool keeps its worker role, and the custom pool wins (MCO, "Custom pools").
  { name: 'infra-0', roles: ['infra', 'worker'] },
] as const;

/** Where the operator and the builder run. No OS of its own stands behind it: it is in no pool. */
export const CONTROL_PLANE_NODE = 'control-plane-0';

/** On the Nodes that have a machine: Shale's daemon runs there. */
export const MACHINE_LABEL = 'shale.dev/sandbox-machine';

/** @returns the Nodes as the installer of a cluster would register them; none is Ready yet. */
export function nodeObjects(): Node[] {
  const machines = MACHINES.map(({ name, roles }) => nodeObject(name, roles, { [MACHINE_LABEL]: '' }));
  const controlPlane: Node = {
    ...nodeObject(CONTROL_PLANE_NODE, ['control-plane'], {}),
    spec: { taints: [{ key: `${labels.nodeRolePrefix}control-plane`, effect: 'NoSchedule' }] },
  };
  return [controlPlane, ...machines];
}

function nodeObject(name: string, roles: readonly string[], more: Readonly<Record<string, string>>): Node {
  const roleLabels = Object.fromEntries(roles.map((role) => [`${labels.nodeRolePrefix}${role}`, '']));
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': process.arch === 'arm64' ? 'arm64' : 'amd64',
        'kubernetes.io/hostname': name,
        ...roleLabels,
        ...more,
      },
    },
    spec: {},
  };
}

/** @returns the pools worker and infra; infra takes worker's MachineConfigs too. */
export function poolObjects(): MachineConfigPool[] {
  return [poolObject('worker', ['worker']), poolObject('infra', ['worker', 'infra'])];
}

function poolObject(name: string, roles: readonly string[]): MachineConfigPool {
  return {
    apiVersion: `${MCO_GROUP}/v1`,
    kind: 'MachineConfigPool',
    metadata: { name },
    spec: {
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: 'In', values: [...roles] }] },
      nodeSelector: { matchLabels: { [`${labels.nodeRolePrefix}${name}`]: '' } },
    },
  };
}

/** The MachineConfig that names the image the nodes come with. */
export const STOCK_CONFIG = '00-worker';

/** @returns that MachineConfig, as an installer would write it. */
export function stockMachineConfig(image: DigestedPullspec): MachineConfig {
  return {
    apiVersion: `${MCO_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: { name: STOCK_CONFIG, labels: { [labels.role]: 'worker' } },
    spec: { osImageURL: image, config: { ignition: { version: '3.4.0' } } },
  };
}

/** @param cas PEM by registry. @returns the ConfigMap that brings registry CAs to every node. */
export function registryCAs(cas: Readonly<Record<string, string>>): ConfigMap {
  // A ConfigMap's key can't hold a colon; OpenShift writes two dots.
  const entries = Object.entries(cas).map(([registry, pem]) => [registry.replace(':', '..'), pem]);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: REGISTRY_CAS_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
    data: Object.fromEntries(entries),
  };
}

/**
 * @param withBudget whether a PodDisruptionBudget limits drains: without a controller that counts its pods it would
 *   block every eviction.
 * @returns a workload on the nodes.
 */
export function sampleWorkload(withBudget: boolean): KubernetesObject[] {
  const podLabels = { 'app.kubernetes.io/name': 'web' };
  const metadata = { name: 'web', namespace: 'default' };
  const deployment: Deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas: 3,
      selector: { matchLabels: podLabels },
      template: {
        metadata: { labels: podLabels },
        spec: {
          nodeSelector: { [`${labels.nodeRolePrefix}worker`]: '' },
          // Nothing runs behind the pods of other images than Shale's, so there is nothing to wait for.
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'web', image: 'registry.example.com/shop/web:1' }],
        },
      },
    },
  };
  const budget: PodDisruptionBudget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec: { maxUnavailable: 1, selector: { matchLabels: podLabels } },
  };
  return withBudget ? [deployment, budget] : [deployment];
}

import { Nodes } from '../api/kubernetes.ts';
import { FLEETLOCK_SLOTS_CONFIG_MAP, MACHINE_CONFIGURATION } from '../api/names.ts';
import type { KeyedStep, StepObject } from '../cluster/failing-steps.ts';
import { ALL_LANES } from '../rollout/act/carry-out.ts';
import type { Caches } from '../rollout/caches.ts';
import { FLEETLOCK_KEY } from '../rollout/fleet-lock/slots.ts';
import type { NodeFeature } from '../rollout/node-feature.ts';
import { nodeOfLease } from '../rollout/node-leases.ts';
import type { Membership } from '../rollout/pools/membership.ts';
import { SERVICES_KEY } from './route-events.ts';

/** How the operator runs a controller of rollout/, and what a key of it stands for. */
interface ControllerEntry extends KeyedStep {
  /**
   * How many keys it works on at the same time; one key is never worked on twice at once. A pool waits for its own
   * writes and not for those of others, whose number has a limit of its own (rollout/act/lanes.ts).
   */
  readonly workers: number;
  /** @returns all of its keys. */
  readonly allKeys: () => Iterable<string>;
}

/** What has keys to work on, beside its own. */
interface Known {
  readonly caches: {
    readonly [Kind in 'pools' | 'nodes' | 'machineConfigNodes' | 'leases']: Pick<
      Caches[Kind],
      'list' | 'get'
    >;
  } & { readonly machineConfigurations: Pick<Caches['machineConfigurations'], 'get'> };
  readonly membership: Pick<Membership, 'wake' | 'poolOf'>;
  /** That Shale runs in. */
  readonly namespace: string;
}

/** @returns every controller of rollout/, by its name in logs and metrics. */
export function controllerTable({ caches, membership, namespace }: Known) {
  const pools = () => caches.pools.list().map(({ metadata }) => metadata.name);
  const nodes = () => nodesOf(caches);
  // What a node leaves that was deleted is its lease, or its MachineConfigNode.
  const known = () => [
    ...nodes(),
    ...caches.nodes.list().map(({ metadata }) => metadata.name),
    ...caches.leases.list().flatMap(({ metadata }) => nodeOfLease(metadata.name) ?? []),
  ];
  const pool = (name: string) => caches.pools.get(name);
  const node = (name: string) => nodeNamed(name, caches);
  const configuration = (): StepObject =>
    caches.machineConfigurations.get(MACHINE_CONFIGURATION) ?? {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION },
    };
  return {
    pools: {
      workers: 64,
      // A pass leaves out nodes that need no attention.
      allKeys: () => {
        for (const { metadata } of caches.nodes.list()) membership.wake(metadata.name);
        return pools();
      },
      doing: 'leading its rollout',
      objectOf: pool,
    },
    finish: {
      workers: ALL_LANES.width,
      allKeys: nodes,
      doing: 'finishing its update',
      objectOf: node,
    },
    rendering: { workers: 2, allKeys: pools, doing: 'rendering its MachineConfigs', objectOf: pool },
    services: {
      workers: 1,
      allKeys: () => [SERVICES_KEY],
      doing: 'generating the MachineConfigs of KubeletConfigs and ContainerRuntimeConfigs',
      objectOf: configuration,
    },
    policy: {
      workers: 1,
      allKeys: () => [MACHINE_CONFIGURATION],
      doing: 'reporting the disruption policies in effect',
      objectOf: configuration,
    },
    certificates: { workers: 4, allKeys: nodes, doing: 'telling it its certificates', objectOf: node },
    annotations: { workers: 4, allKeys: nodes, doing: "setting MCO's annotations on it", objectOf: node },
    departed: {
      workers: 2,
      allKeys: () => new Set(known().filter((name) => membership.poolOf(name) === undefined)),
      doing: 'cleaning it up after it left its pool',
      objectOf: node,
    },
    maintenanceDrains: {
      workers: 2,
      allKeys: nodes,
      doing: 'reporting what its maintenance waits for',
      objectOf: node,
    },
    poweredOff: {
      workers: 2,
      allKeys: () => new Set(known()),
      doing: 'holding the lease of a machine that is switched off',
      objectOf: node,
    },
    fleetLock: {
      workers: 1,
      allKeys: () => [FLEETLOCK_KEY],
      doing: 'giving back slots of lock services',
      objectOf: () => configMapNamed(FLEETLOCK_SLOTS_CONFIG_MAP, namespace),
    },
  } as const satisfies Readonly<Record<string, ControllerEntry>>;
}

/** @returns the same of a feature's controller. */
export function featureEntry({ doing }: Pick<NodeFeature, 'doing'>, { caches }: Pick<Known, 'caches'>) {
  return {
    workers: 4,
    allKeys: () => nodesOf(caches),
    doing,
    objectOf: (name: string) => nodeNamed(name, caches),
  } satisfies ControllerEntry;
}

export type ControllerName = keyof ReturnType<typeof controllerTable>;

/** @returns a ConfigMap as failing steps are about it. */
export function configMapNamed(name: string, namespace: string): StepObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
}

function nodesOf({ machineConfigNodes }: Known['caches']): string[] {
  return machineConfigNodes.list().map(({ metadata }) => metadata.name);
}

function nodeNamed(name: string, { nodes }: Known['caches']): StepObject {
  return nodes.get(name) ?? { apiVersion: 'v1', kind: Nodes.kind, metadata: { name } };
}

import type { DisruptionCause } from '../../api/disruption-action.ts';
import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import {
  type MachineConfigNode,
  MachineConfigNodes,
  type UpdatePlan,
  type UpdateRecord,
} from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { annotations, labels } from '../../api/names.ts';
import type { Condition, Kind, KubernetesObject, NewObject } from '../../api/object.ts';
import { type PoolRevision, PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { formatDrain } from '../../rollout/act/drain-step.ts';
import { policyStatus } from '../../rollout/controllers/policy-controller.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { aBuild, condition as aCondition, aMachineConfigNode, aNode, aPool } from '../fixtures/objects.ts';
import { configsOf, revisionsOf, SOURCES } from './fleet-change.ts';

/** A cluster in the middle of a rollout, as its objects show it. */
export interface Fleet {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  readonly builds: readonly MachineOSBuild[];
  readonly leases: readonly Lease[];
  readonly machineConfiguration: MachineConfiguration;
  /** The rendered configs of each pool before and after its change, and the MachineConfigs that the later one is merged from. */
  readonly machineConfigs: readonly MachineConfig[];
  readonly poolRevisions: readonly PoolRevision[];
}

export const LEASE_NAMESPACE = 'medik8s-leases';
const BASE = `quay.example/fedora/fedora-bootc@sha256:${'b'.repeat(64)}`;

/** What a node of the fleet is at. */
export type Part =
  | 'updated'
  | 'preparing'
  | 'waiting'
  | 'draining'
  | 'applying'
  | 'rebooting'
  | 'degraded'
  | 'maintenance';

/** @param now ms since the epoch. */
function imageOf(config: string): string {
  const digit = [...config].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 16, 7).toString(16);
  return `registry.example:5000/os/${config.split('-')[1]}@sha256:${`${digit}4f`.repeat(22).slice(0, 64)}`;
}

const CAUSES: DisruptionCause[] = [
  {
    subject: '/etc/sysctl.d/90-inotify.conf',
    kind: 'file',
    change: 'changed',
    rule: 'no policy: Reboot',
    actions: [{ type: 'Reboot' }],
  },
  {
    subject: '/etc/chrony.conf',
    kind: 'file',
    change: 'changed',
    rule: 'policy file /etc/chrony.conf',
    actions: [{ type: 'Restart', service: 'chronyd.service' }],
  },
];

/** What a pool's update asks of its nodes. */
export interface PoolPlan {
  readonly actions: UpdatePlan['actions'];
  readonly causes: DisruptionCause[];
}
const REBOOTS: PoolPlan = { actions: [{ type: 'Drain' }, { type: 'Reboot' }], causes: CAUSES };
const RESTARTS: PoolPlan = {
  actions: [{ type: 'Restart', service: 'chronyd.service' }],
  causes: CAUSES.slice(1),
};

/** What the drains of the fleet wait for. */
const HELD_DRAIN: Parameters<typeof formatDrain>[0] = {
  kind: 'draining',
  terminating: [],
  blocked: [{ pod: 'shop/web-1', why: 'PodDisruptionBudget web (allows 0 disruptions)' }],
};

/** @returns a node at some part of its update, with the objects that show it. */
export function aNodeOf(
  pool: string,
  name: string,
  part: Part,
  { plan: { actions, causes } = REBOOTS, now, ago = 60 }: { plan?: PoolPlan; now: number; ago?: number },
): { readonly node: Node; readonly machineConfigNode: MachineConfigNode; readonly lease?: Lease } {
  const [before, target] = [`rendered-${pool}-1a2b3c4d`, `rendered-${pool}-9f8e7d6c`];
  const at = (seconds: number) => new Date(now - seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
  const condition = (
    type: string,
    status: Condition['status'],
    message: string,
    reason = type,
  ): Condition => ({ type, status, reason, message, lastTransitionTime: at(ago) });
  const plan: UpdatePlan = {
    config: target,
    image: imageOf(target) as NonNullable<UpdatePlan['image']>,
    staged: true,
    actions,
    causes,
    source: 'image label',
  };
  const done = part === 'updated';
  const busy = part === 'draining' || part === 'applying' || part === 'rebooting';
  const spec: Partial<MachineConfigNode['spec']> = {
    pool: { name: pool },
    configVersion: { desired: target },
    configImage: { desiredImage: imageOf(target) as never },
    ...(part === 'applying' || part === 'rebooting'
      ? {
          grant: {
            level: actions.some(({ type }) => type === 'Reboot') ? 'Disrupt' : 'Live',
            config: target,
            image: imageOf(target) as never,
            leaseHolder: 'shale-operator',
          } as const,
        }
      : {}),
  };
  const conditions: Readonly<Record<Part, readonly Condition[]>> = {
    updated: [condition('Updated', 'True', 'the node runs its target')],
    preparing: [condition('UpdatePrepared', 'False', 'Staging the target', 'Preparing')],
    waiting: [condition('UpdatePrepared', 'True', 'waits for its turn', 'Prepared')],
    maintenance: [condition('UpdatePrepared', 'True', 'waits for its turn', 'Prepared')],
    draining: [
      condition('UpdatePrepared', 'True', 'waits for its turn', 'Prepared'),
      condition('Drained', 'Unknown', `The node ${formatDrain(HELD_DRAIN)}`, 'DrainBlocked'),
    ],
    applying: [condition('UpdateExecuted', 'Unknown', 'restarts chronyd.service', 'Applying')],
    rebooting: [
      condition('UpdateExecuted', 'True', 'The target is staged as the next boot', 'Applied'),
      condition('RebootedNode', 'Unknown', 'the node reboots', 'Rebooting'),
    ],
    degraded: [
      condition('NodeDegraded', 'True', 'chronyd.service did not start: exit status 1', 'UpdateFailed'),
    ],
  };
  const lastUpdate: UpdateRecord = {
    config: target,
    image: imageOf(target) as NonNullable<UpdateRecord['image']>,
    actions,
    causes,
    source: 'image label',
    startedAt: at(ago + 42),
    finishedAt: at(ago),
    bootIDBefore: 'boot-1',
    bootIDAfter: actions.some(({ type }) => type === 'Reboot') ? 'boot-2' : 'boot-1',
    result: 'Succeeded',
  };
  const runs = done ? target : before;
  const status: MachineConfigNode['status'] = {
    conditions: [...conditions[part]],
    configVersion: { current: runs, desired: target },
    configImage: { currentImage: imageOf(runs) as never, desiredImage: imageOf(target) as never },
    mode: 'Layered',
    baseImage: BASE,
    ...(done ? { lastUpdate } : part === 'preparing' ? {} : { plan }),
    ...(part === 'preparing' ? { staging: { bytesDone: 31_000_000, bytesTotal: 84_000_000 } } : {}),
  };
  const ready = { ...condition('Ready', part === 'rebooting' ? 'False' : 'True', ''), reason: 'Kubelet' };
  return {
    node: aNode(name, {
      metadata: {
        name,
        labels: { [`${labels.nodeRolePrefix}${pool}`]: '' },
        annotations: {
          ...(busy ? { [annotations.cordonedByShale]: 'true' } : {}),
          ...(part === 'maintenance'
            ? {
                [annotations.plannedMaintenance]: JSON.stringify({
                  reason: 'disk swap',
                  by: 'ops',
                  until: at(-7_200),
                }),
              }
            : {}),
        },
      },
      spec: busy ? { unschedulable: true } : {},
      status: { conditions: [ready] },
    }),
    machineConfigNode: aMachineConfigNode(name, spec, status),
    ...(busy ? { lease: aLease(name, at(ago + 25), at(1)) } : {}),
  };
}

function aLease(node: string, since: string, renewed: string): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseNameOf(node), namespace: LEASE_NAMESPACE },
    spec: {
      holderIdentity: 'shale-operator',
      acquireTime: `${since.slice(0, -1)}.000000Z`,
      renewTime: `${renewed.slice(0, -1)}.000000Z`,
      leaseDurationSeconds: 300,
    },
  };
}

/**
 * A fleet in a rollout: some nodes of each part, most of them waiting or done.
 *
 * @param sizes how many nodes each pool has.
 */
export function aFleet(sizes: Readonly<Record<string, number>>, now: number): Fleet {
  const members = Object.entries(sizes).flatMap(([pool, size]) =>
    Array.from({ length: size }, (_, index) => {
      const name = `${pool}-${String(index).padStart(String(size - 1).length, '0')}`;
      const plan = pool === 'infra' ? RESTARTS : REBOOTS;
      return aNodeOf(pool, name, partOf(index, size, plan), { plan, now, ago: agoOf(index, size) });
    }),
  );
  const configuration: MachineConfiguration = {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster', generation: 1 },
    spec: {
      nodeDisruptionPolicy: {
        files: [
          {
            path: '/etc/chrony.conf',
            actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }],
          },
        ],
      },
    },
  };
  return {
    pools: Object.entries(sizes).map(([name, size]) => aPoolOf(name, size, now)),
    machineConfigs: Object.keys(sizes).flatMap(configsOf),
    poolRevisions: Object.keys(sizes).flatMap(revisionsOf),
    machineConfigNodes: members.map(({ machineConfigNode }) => machineConfigNode),
    nodes: members.map(({ node }) => node),
    builds: Object.keys(sizes).flatMap((pool) => buildsOf(pool, now)),
    leases: members.flatMap(({ lease }) => lease ?? []),
    machineConfiguration: {
      ...configuration,
      status: {
        ...policyStatus(configuration, { ...defaultPolicySettings, pools: [] }, now),
        observedGeneration: 1,
      },
    },
  };
}

/** The first two fifths are done, then a few are at work, and the rest waits. */
function partOf(index: number, size: number, plan: PoolPlan): Part {
  const done = Math.floor(size * 0.4);
  const atWork: readonly Part[] = [
    'rebooting',
    'draining',
    'applying',
    'degraded',
    'maintenance',
    'preparing',
  ];
  const part = index < done ? 'updated' : (atWork[index - done] ?? 'waiting');
  return plan === RESTARTS && (part === 'rebooting' || part === 'draining') ? 'applying' : part;
}

/** The nodes that are done were so two at a time, 70 s each, or as fast as fits into 20 minutes. */
function agoOf(index: number, size: number): number {
  const done = Math.floor(size * 0.4);
  const slot = Math.min(70, 1_200 / (done / 2));
  return index < done ? 20 + Math.round(Math.floor((done - 1 - index) / 2) * slot) : 15;
}

/** @returns an annotation with a daily window that opened in the last hour, and closes three hours later. */
function openWindow(now: number): string {
  const hour = new Date(now).getUTCHours();
  return JSON.stringify([{ schedule: `0 ${hour} * * *`, duration: '3h' }]);
}

function aPoolOf(name: string, size: number, now: number): MachineConfigPool {
  const target = `rendered-${name}-9f8e7d6c`;
  const done = Math.floor(size * 0.4);
  const message = `${done} of ${size} nodes run ${target}`;
  const pool = aPool(name, {
    maxUnavailable: 3,
    configuration: { name: target, source: SOURCES.map((source) => ({ name: `${source}-${name}` })) },
  });
  const settings = {
    [annotations.sourceUrl]: 'https://git.example.com/fleet/nodes',
    [annotations.sourceRevision]: '7f3c2d9',
    [annotations.maintenanceWindows]: openWindow(now),
  };
  return {
    ...pool,
    metadata: { ...pool.metadata, ...(name === 'infra' ? {} : { annotations: settings }) },
    status: {
      configuration: { name: `rendered-${name}-1a2b3c4d` },
      machineCount: size,
      updatedMachineCount: done,
      readyMachineCount: done,
      unavailableMachineCount: 3,
      degradedMachineCount: 1,
      conditions: [{ ...aCondition('Updating', 'True', message), reason: 'NodesUpdating' }],
    },
  };
}

function buildsOf(pool: string, now: number): MachineOSBuild[] {
  const at = (seconds: number) => new Date(now - seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
  const target = `rendered-${pool}-9f8e7d6c`;
  const build = (
    name: string,
    config: string,
    ago: number,
    status: NonNullable<MachineOSBuild['status']>,
  ): MachineOSBuild => {
    const object = aBuild(name, config, { at: at(ago), status });
    const renderedImagePushSpec = `registry.example:5000/os/${pool}:${name}`;
    return {
      ...object,
      metadata: { ...object.metadata, labels: { [labels.targetPool]: pool } },
      spec: { ...object.spec, machineOSConfig: { name: pool }, renderedImagePushSpec },
    };
  };
  const condition = (type: string, ago: number, message: string): Condition => ({
    ...aCondition(type, 'True', message),
    lastTransitionTime: at(ago),
  });
  return [
    build(`${pool}-9f8e7d6c`, target, 1_500, {
      conditions: [condition('Succeeded', 1_480, 'pushed')],
      builder: { imageBuilderType: pool === 'infra' ? 'Append' : 'Engine' },
      buildStart: at(1_500),
      buildEnd: at(1_480),
      digestedImagePushSpec: imageOf(target) as never,
      baseImage: BASE,
      transitions: [
        {
          from: `rendered-${pool}-1a2b3c4d`,
          actions: pool === 'infra' ? 'Restart(chronyd.service)' : 'Drain, Reboot',
        },
        { from: `rendered-${pool}-5e6f7a8b`, actions: 'Reboot' },
      ],
      ...(pool === 'infra'
        ? {}
        : {
            logTail: [
              `STEP 1/4: FROM ${BASE.slice(0, 60)}…`,
              'STEP 2/4: COPY layer/ /',
              'STEP 3/4: RUN dnf -y install tcpdump',
              'Installing : tcpdump-14:4.99.4-3.fc40.x86_64',
              'Complete!',
              'STEP 4/4: LABEL dev.shale.pool=worker',
            ],
          }),
    }),
    build(`${pool}-next`, `rendered-${pool}-00c0ffee`, 12, {
      conditions: [condition('Building', 12, 'the image is being built')],
      buildStart: at(12),
      logTail: ['STEP 1/4: FROM quay.example/fedora/fedora-bootc', 'STEP 2/4: COPY layer/ /'],
    }),
  ];
}

/** Puts a fleet into a cluster, status and all. @throws ApiError */
export async function putFleet(client: ApiClient, fleet: Fleet, signal: AbortSignal): Promise<void> {
  const put = async <T extends KubernetesObject & { readonly status?: unknown }>(
    kind: Kind<T>,
    objects: readonly T[],
  ) => {
    for (const object of objects) await putObject(client, kind, object, signal);
  };
  await put(MachineConfigPools, fleet.pools);
  await put(MachineConfigs, fleet.machineConfigs);
  await put(PoolRevisions, await ofPools(client, fleet.poolRevisions, signal));
  await put(Nodes, fleet.nodes);
  await put(MachineConfigNodes, fleet.machineConfigNodes);
  await put(MachineOSBuilds, fleet.builds);
  await put(MachineConfigurations, [fleet.machineConfiguration]);
  for (const lease of fleet.leases) {
    await client.create(Leases, lease, { namespace: LEASE_NAMESPACE, signal });
  }
}

/** A revision counts only if it names the pool as its owner. @throws ApiError */
async function ofPools(
  client: ApiClient,
  revisions: readonly PoolRevision[],
  signal: AbortSignal,
): Promise<readonly PoolRevision[]> {
  const { items } = await client.list(MachineConfigPools, { signal });
  const uids = new Map(items.map(({ metadata }) => [metadata.name, metadata.uid ?? '']));
  return revisions.map((revision) => {
    const { name } = revision.spec.machineConfigPool;
    const owner = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      name,
      uid: uids.get(name) ?? '',
    };
    return { ...revision, metadata: { ...revision.metadata, ownerReferences: [owner] } };
  });
}

/** Makes an object what is given, status and all, whether it is there or not. @throws ApiError */
export async function putObject<T extends KubernetesObject & { readonly status?: unknown }>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  const { name, labels: given = {}, annotations: marks = {}, ownerReferences = [] } = object.metadata;
  const known = await client.find(kind, name, { signal });
  const written =
    known === undefined
      ? await client.create(
          kind,
          {
            ...object,
            metadata: { name, labels: given, annotations: marks, ownerReferences },
          } as NewObject<T>,
          {
            signal,
          },
        )
      : await client.replace(
          kind,
          { ...known, ...object, metadata: { ...known.metadata, labels: given, annotations: marks } },
          { signal },
        );
  if (object.status === undefined) return;
  await client.replaceStatus(kind, { ...written, status: object.status }, { signal });
}

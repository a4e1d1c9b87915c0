import type { DisruptionCause } from '../../api/disruption-action.ts';
import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, UpdatePlan, UpdateRecord } from '../../api/machine-config-node.ts';
import { annotations, labels } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { formatDrain } from '../../rollout/act/drain-step.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { aMachineConfigNode, aNode } from '../fixtures/objects.ts';

export const LEASE_NAMESPACE = 'medik8s-leases';
/** The base image of every build of the fleet. */
export const BASE = `quay.example/fedora/fedora-bootc@sha256:${'b'.repeat(64)}`;

/** What a node of the fleet is at. */
export type Part =
  | 'updated'
  | 'staging'
  | 'staged'
  | 'armed'
  | 'draining'
  | 'applying'
  | 'rebooting'
  | 'verifying'
  | 'degraded'
  | 'maintenance';

/** @returns the image of a rendered config, the same each time. */
export function imageOf(config: string): string {
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
export const REBOOTS: PoolPlan = { actions: [{ type: 'Drain' }, { type: 'Reboot' }], causes: CAUSES };
export const RESTARTS: PoolPlan = {
  actions: [{ type: 'Restart', service: 'chronyd.service' }],
  causes: CAUSES.slice(1),
};

/** What the drains of the fleet wait for. */
const HELD_DRAIN: Parameters<typeof formatDrain>[0] = {
  kind: 'draining',
  terminating: [],
  blocked: [{ pod: 'shop/web-1', reason: 'PodDisruptionBudget web (allows 0 disruptions)' }],
};

/** The health check of the fleet that fails. */
const FAILING_CHECK = {
  waitsFor: 'health check 10-etcd failed',
  check: '10-etcd',
  output: 'exit status 1\netcd member did not rejoin',
};

/** @param now ms since the epoch. @returns a node at some part of its update, with the objects that show it. */
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
    ...(part === 'armed' ? { nextBoot: true } : {}),
  };
  const done = part === 'updated';
  const busy = part === 'draining' || part === 'applying' || part === 'rebooting';
  const spec: Partial<MachineConfigNode['spec']> = {
    pool: { name: pool },
    configVersion: { desired: target },
    configImage: { desiredImage: imageOf(target) },
    ...(part === 'applying' || part === 'rebooting'
      ? {
          grant: {
            level: actions.some(({ type }) => type === 'Reboot') ? 'Disrupt' : 'Live',
            config: target,
            image: imageOf(target),
            leaseHolder: 'shale-operator',
          } as const,
        }
      : {}),
  };
  const conditions: Readonly<Record<Part, readonly Condition[]>> = {
    updated: [condition('Updated', 'True', 'the node runs its target')],
    staging: [condition('UpdatePrepared', 'False', 'Staging the target', 'Preparing')],
    staged: [condition('UpdatePrepared', 'True', 'waits for its turn', 'Prepared')],
    armed: [condition('UpdatePrepared', 'True', "Staged; applies at the node's next reboot", 'AtNextReboot')],
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
    verifying: [
      condition('UpdateExecuted', 'True', 'The target is staged as the next boot', 'Applied'),
      condition('RebootedNode', 'True', 'The node booted the target', 'Rebooted'),
      condition('UpdatePostActionComplete', 'Unknown', 'health check 10-etcd failed', 'HealthChecks'),
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
    configImage: { currentImage: imageOf(runs), desiredImage: imageOf(target) },
    mode: 'Layered',
    baseImage: BASE,
    ...(part === 'draining' ? { drain: { blockedBy: [...HELD_DRAIN.blocked] } } : {}),
    ...(part === 'verifying' ? { verification: { ...FAILING_CHECK, deadline: at(-180) } } : {}),
    ...(part === 'degraded' ? { lastUpdate: { ...lastUpdate, result: 'Failed' } as const } : {}),
    ...(done ? { lastUpdate } : part === 'staging' ? {} : { plan }),
    ...(part === 'staging' ? { staging: { bytesDone: 31_000_000, bytesTotal: 84_000_000 } } : {}),
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

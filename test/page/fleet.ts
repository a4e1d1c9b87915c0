import type { BuildContents } from '../../api/build-contents.ts';
import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations, labels } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { policyStatus } from '../../rollout/controllers/policy-controller.ts';
import { aBuild, condition as aCondition, aPool } from '../fixtures/objects.ts';
import { configsOf, revisionsOf, SOURCES } from './fleet-change.ts';
import { aNodeOf, BASE, imageOf, type Part, type PoolPlan, REBOOTS, RESTARTS } from './fleet-node.ts';

/** A cluster in the middle of a rollout, as its objects show it. */
export interface Fleet {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  readonly builds: readonly MachineOSBuild[];
  readonly leases: readonly Lease[];
  readonly machineConfiguration: MachineConfiguration;
  /**
   * The rendered configs of each pool before and after its change, and the MachineConfigs that the later one is merged
   * from.
   */
  readonly machineConfigs: readonly MachineConfig[];
  readonly poolRevisions: readonly PoolRevision[];
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
  const atWork: readonly Part[] = ['rebooting', 'draining', 'applying', 'degraded', 'maintenance', 'staging'];
  const part = index < done ? 'updated' : (atWork[index - done] ?? 'staged');
  return plan === RESTARTS && (part === 'rebooting' || part === 'draining') ? 'applying' : part;
}

/** The nodes that are done were so two at a time, 70 s each, or as fast as fits into 20 minutes. */
function agoOf(index: number, size: number): number {
  const done = Math.floor(size * 0.4);
  const slot = Math.min(70, 1_200 / (done / 2));
  return index < done ? 20 + Math.round(Math.floor((done - 1 - index) / 2) * slot) : 15;
}

/** @returns a daily window that opened in the last hour, and closes three hours later. */
function openWindow(now: number): NonNullable<SettingFields['maintenanceWindows']> {
  const hour = new Date(now).getUTCHours();
  return [{ schedule: `0 ${hour} * * *`, duration: '3h' }];
}

function aPoolOf(name: string, size: number, now: number): MachineConfigPool {
  const target = `rendered-${name}-9f8e7d6c`;
  const done = Math.floor(size * 0.4);
  const message = `${done} of ${size} nodes run ${target}`;
  const pool = aPool(name, {
    maxUnavailable: 3,
    configuration: { name: target, source: SOURCES.map((source) => ({ name: `${source}-${name}` })) },
    shale: name === 'infra' ? {} : { maintenanceWindows: openWindow(now) },
  });
  const settings = {
    [annotations.sourceUrl]: 'https://git.example.com/fleet/nodes',
    [annotations.sourceRevision]: '7f3c2d9',
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

const newContents: BuildContents = {
  summary: '23 packages (1 added, 1 removed, 21 upgraded), kernel 6.12.9 -> 6.12.14',
  base: { from: BASE.replace(/[0-9a-f]{8}$/, '00c0ffee'), to: BASE },
  packages: {
    added: 1,
    removed: 1,
    upgraded: 21,
    downgraded: 0,
    changed: 0,
    first: [
      { change: 'removed', name: 'telnet', from: '0.17-41' },
      { change: 'added', name: 'nftables', to: '1.1.3-1' },
      { change: 'upgraded', name: 'libssl3t64', from: '3.5.1-1+deb13u1', to: '3.5.4-1~deb13u2' },
      {
        change: 'upgraded',
        name: 'linux-image-6.12.14-unsigned-with-a-name-as-long-as-some-have-it',
        from: '6.12.9-1~bpo12+1.20261129.0123456789abcdef',
        to: '6.12.14-1~bpo12+1.20261129.0123456789abcdef',
      },
      ...Array.from({ length: 16 }, (_, index) => ({
        change: 'upgraded',
        name: `library-${index}`,
        from: '1.0-1',
        to: '1.0-2',
      })),
    ],
  },
  kernels: { from: ['6.12.9'], to: ['6.12.14'] },
};

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
      digestedImagePushSpec: imageOf(target),
      baseImage: BASE,
      ...(pool === 'worker' ? { contents: newContents } : {}),
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

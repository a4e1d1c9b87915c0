import { expect, test } from 'vitest';
import type { CustomResourceDefinition, DaemonSet, Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { judgeNeighbours, type Neighbourhood } from './check-neighbours.ts';

const nothing: Neighbourhood = {
  definitions: [],
  workloads: [],
  nodes: [],
  machineConfigs: [],
  operator: { patchesMachines: false },
};
const definition = (name: string) => ({ metadata: { name } }) as CustomResourceDefinition;
const workload = (name: string, image: string) =>
  ({
    kind: 'DaemonSet',
    metadata: { name, namespace: 'kube-system' },
    spec: { selector: {}, template: { spec: { containers: [{ name: 'main', image }] } } },
  }) as unknown as DaemonSet;
const host = (name: string, osImage: string): Node => aNode(name, { status: { nodeInfo: { osImage } } });
const unit = (name: string, more: object) =>
  ({
    metadata: { name: '10-worker-units' },
    spec: { config: { ignition: { version: '3.4.0' }, systemd: { units: [{ name, ...more }] } } },
  }) as unknown as MachineConfig;
const FCOS = 'Fedora CoreOS 44.20260901.3.0';

test.each<[string, Partial<Neighbourhood>, string]>([
  [
    'the bootc operator',
    { definitions: [definition('bootcnodepools.bootc.dev')] },
    'the bootc operator is installed, which switches nodes to images of its own',
  ],
  [
    'Kured by its name',
    { workloads: [workload('kured', 'mirror.example.com/reboot:1')] },
    'Kured (DaemonSet kube-system/kured) drains and reboots nodes without their leases',
  ],
  [
    'Kured by its image',
    { workloads: [workload('reboots', 'ghcr.io:443/kubereboot/kured:1.20.0@sha256:00')] },
    'Kured (DaemonSet kube-system/reboots) drains and reboots nodes without their leases',
  ],
  [
    'the system-upgrade-controller',
    { definitions: [definition('plans.upgrade.cattle.io')] },
    'system-upgrade-controller is installed, whose Plans may drain and reboot nodes without their leases',
  ],
  [
    "Flatcar's update operator",
    { workloads: [workload('agent', 'ghcr.io/flatcar/flatcar-linux-update-operator:v0.9.0')] },
    'the Flatcar Linux Update Operator (DaemonSet kube-system/agent) drains and reboots nodes after updates of their own',
  ],
  ...['machinehealthchecks.cluster.x-k8s.io', 'machinehealthchecks.machine.openshift.io'].map(
    (name): [string, Partial<Neighbourhood>, string] => [
      name,
      { definitions: [definition(name)] },
      `MachineHealthChecks (${name}) replace machines whose nodes are not Ready for too long, no matter who reboots them`,
    ],
  ),
  ...[
    'selfnoderemediations.self-node-remediation.medik8s.io',
    'fenceagentsremediations.fence-agents-remediation.medik8s.io',
    'machinedeletionremediations.machine-deletion-remediation.medik8s.io',
  ].map((name): [string, Partial<Neighbourhood>, string] => [
    name,
    { definitions: [definition(name)] },
    `a remediator of medik8s is installed (${name}), which takes no node lease itself`,
  ]),
  [
    "KubeVirt's NodeMaintenance",
    { definitions: [definition('nodemaintenances.nodemaintenance.kubevirt.io')] },
    "KubeVirt's former Node Maintenance Operator is installed, whose NodeMaintenances Shale doesn't read",
  ],
  [
    'Zincati',
    {
      nodes: [host('b', FCOS), host('a', 'Debian GNU/Linux 12 (bookworm)')],
      machineConfigs: [unit('zincati.service', { enabled: true }), unit('other.service', { mask: true })],
    },
    'Zincati updates Fedora CoreOS by itself, and no MachineConfig disables it: b',
  ],
])('finds %s', (_name, more, what) => {
  expect(judgeNeighbours({ ...nothing, ...more })).toEqual([
    { level: 'warning', check: 'neighbours', what, fix: expect.stringMatching(/^[a-z].*[^.]$/) },
  ]);
});

test.each<[string, Partial<Neighbourhood>, string]>([
  [
    'the cluster autoscaler of a distribution',
    { workloads: [workload('autoscaler', 'registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0')] },
    'the cluster autoscaler (DaemonSet kube-system/autoscaler) deletes no node while Shale drains or reboots it',
  ],
  [
    'Karpenter',
    { definitions: [definition('nodepools.karpenter.sh')] },
    'Karpenter disrupts no node while Shale drains or reboots it, unless the node expires',
  ],
  [
    'MachineHealthChecks of Cluster API, where the operator may exempt machines',
    {
      definitions: [definition('machinehealthchecks.cluster.x-k8s.io')],
      operator: { patchesMachines: true },
    },
    'MachineHealthChecks (machinehealthchecks.cluster.x-k8s.io) replace no machine while Shale drains or reboots its node',
  ],
  [
    'Node Health Check',
    { definitions: [definition('nodehealthchecks.remediation.medik8s.io')] },
    "medik8s' Node Health Check takes the node lease before it has a node remediated",
  ],
  [
    "medik8s' NodeMaintenance",
    { definitions: [definition('nodemaintenances.nodemaintenance.medik8s.io')] },
    "medik8s' Node Maintenance Operator and Shale take the same node leases",
  ],
])('finds %s, which needs nothing', (_name, more, what) => {
  expect(judgeNeighbours({ ...nothing, ...more })).toEqual([{ level: 'ok', check: 'neighbours', what }]);
});

test('finds every neighbour of a cluster', () => {
  const definitions = ['nodepools.karpenter.sh', 'nodehealthchecks.remediation.medik8s.io'].map(definition);
  const workloads = [workload('kured', 'kured'), workload('cluster-autoscaler', 'a')];
  const found = judgeNeighbours({ ...nothing, definitions, workloads });
  expect(found.map(({ level }) => level)).toEqual(['warning', 'ok', 'ok', 'ok']);
});

test.each<[string, Partial<Neighbourhood>]>([
  ['an empty cluster', {}],
  ['workloads of other names', { workloads: [workload('kured-exporter', 'example.com/kured/exporter:1')] }],
  [
    'remediators where Node Health Check takes the leases, which is reported instead',
    {
      definitions: [
        definition('selfnoderemediations.self-node-remediation.medik8s.io'),
        definition('nodehealthchecks.remediation.medik8s.io'),
      ],
    },
  ],
  [
    'a Zincati that is disabled',
    { nodes: [host('a', FCOS)], machineConfigs: [unit('zincati.service', { enabled: false })] },
  ],
  [
    'a Zincati that is masked',
    { nodes: [host('a', FCOS)], machineConfigs: [unit('zincati.service', { mask: true })] },
  ],
])('warns of nothing in %s', (_name, more) => {
  const warnings = judgeNeighbours({ ...nothing, ...more }).filter(({ level }) => level !== 'ok');
  expect(warnings).toEqual([]);
});

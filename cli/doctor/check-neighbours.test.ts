import { expect, test } from 'vitest';
import type { CustomResourceDefinition, DaemonSet, Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { judgeNeighbours, type Neighbourhood } from './check-neighbours.ts';

const nothing: Neighbourhood = { definitions: [], workloads: [], nodes: [], machineConfigs: [] };
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

test.each<[string, Partial<Neighbourhood>]>([
  ['an empty cluster', {}],
  ['workloads of other names', { workloads: [workload('kured-exporter', 'example.com/kured/exporter:1')] }],
  [
    'a Zincati that is disabled',
    { nodes: [host('a', FCOS)], machineConfigs: [unit('zincati.service', { enabled: false })] },
  ],
  [
    'a Zincati that is masked',
    { nodes: [host('a', FCOS)], machineConfigs: [unit('zincati.service', { mask: true })] },
  ],
])('finds nothing in %s', (_name, more) => {
  expect(judgeNeighbours({ ...nothing, ...more })).toEqual([]);
});

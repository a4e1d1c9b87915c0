import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { shellWords } from '../../daemon/os/os-command.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { CONTAINER_RECIPE, type RootfsRecipe } from '../../workshop/sandbox/systemd-node/rootfs.ts';
import { systemdStockLayer } from '../../workshop/sandbox/systemd-node/systemd-nodes.ts';
import { enabledUnit, link, text } from '../node-lab/lab-updates.ts';
import { type GivenPrograms, POLICY_ENFORCER } from './given-programs.ts';
import { ENFORCER_PACKAGES, enforcerEntries } from './policy-enforcer.ts';

/**
 * What the operating system of the cluster's machines has: Debian, a kubelet with containerd, and the sandbox's stock
 * image.
 */

/** Of those that are given, what runs on a machine. */
const ON_MACHINES = ['kubelet', 'containerd', 'containerd-shim-runc-v2', 'ctr'] as const;

/** @returns Debian with a kubelet and all that it needs; other programs, another root file system. */
export function machineRecipe(given: GivenPrograms): RootfsRecipe {
  const enforcer = given[POLICY_ENFORCER];
  const programs = [
    ...ON_MACHINES.map((name) => [name, given[name]] as const),
    ...(enforcer === undefined ? [] : [[POLICY_ENFORCER, enforcer] as const]),
  ];
  const installed = programs.map(([name, file]) => {
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
    const install = shellWords(['install', '-m', '755', file]);
    return `--customize-hook=${install} "$1"/usr/bin/${name} # ${digest}`;
  });
  const forEnforcer = enforcer === undefined ? [] : ENFORCER_PACKAGES;
  return {
    ...CONTAINER_RECIPE,
    packages: [
      ...[...CONTAINER_RECIPE.packages, 'runc', 'containernetworking-plugins', 'iproute2'],
      ...forEnforcer,
    ],
    hooks: [...CONTAINER_RECIPE.hooks, ...installed],
  };
}

/** The pause container, which is of every pod; containerd has it by import. */
export const PAUSE_IMAGE = 'localhost/pause:lab';

const CONTAINERD = `version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "${PAUSE_IMAGE}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  # Containers that the test itself may run in can't lower it.
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    SystemdCgroup = false
`;

/** systemd-nspawn makes them read-only, all but systemd's own; the machine has a branch of its own in each. */
const CGROUPS = `[Unit]
Description=Let the kubelet have the cgroup controllers
Before=containerd.service kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for each in /sys/fs/cgroup /sys/fs/cgroup/*; do if mountpoint -q $each; then mount -o remount,bind,rw $each; fi; done'
`;

const CONTAINERD_UNIT = `[Unit]
Description=containerd
After=network.target lab-cgroups.service
[Service]
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
LimitNOFILE=65536
`;

const KUBELET = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
localStorageCapacityIsolation: false
# Its disk is that of the machine which the test runs on.
evictionHard:
  memory.available: 10Mi
  nodefs.available: "1%"
  imagefs.available: "1%"
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 4s
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/ca.crt
authorization:
  mode: Webhook
`;

const KUBELET_UNIT = `[Unit]
Description=kubelet
After=containerd.service network-online.target
Wants=network-online.target
Requires=containerd.service
StartLimitIntervalSec=0
[Service]
EnvironmentFile=/etc/kubernetes/kubelet.env
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.kubeconfig $KUBELET_ARGUMENTS
KillMode=process
Restart=always
RestartSec=1
`;

/** Where the programs of a real kubelet and containerd are, the sandbox's image has stand-ins. */
const STAND_INS = /\/(kubelet|crio)(\.service|\.conf)?$/;

/** @param rootfs of machineRecipe. @returns the layer above it. */
export async function machineLayer(rootfs: string, given: GivenPrograms): Promise<readonly LayerEntry[]> {
  const stock = (await systemdStockLayer(rootfs)).filter(({ path }) => !STAND_INS.test(path));
  return [
    ...stock,
    ...enabledUnit('lab-cgroups.service', CGROUPS),
    ...enabledUnit('containerd.service', CONTAINERD_UNIT),
    ...enabledUnit('kubelet.service', KUBELET_UNIT),
    ...(given[POLICY_ENFORCER] === undefined ? [] : enforcerEntries()),
    link('/etc/systemd/system/multi-user.target.wants/systemd-networkd.service', NETWORKD),
    text('/etc/containerd/config.toml', CONTAINERD),
    text('/etc/kubernetes/kubelet.yaml', KUBELET),
  ];
}

const NETWORKD = '/usr/lib/systemd/system/systemd-networkd.service';

import { DEFAULT_NAMESPACE } from '../../../api/names.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { NODE } from '../../fixtures/node-control-plane.ts';
import { enabledUnit, link, text } from '../lab-updates.ts';

/** The registry's name on the machine: the same in each run, whatever its port on the host is. */
export const REGISTRY_IN_GUEST = '127.0.0.1:5000';
const API_PORT = 6443;
export const DAEMON_SERVICE = 'shale-daemon.service';
/** Where the second disk is mounted (pod-disk.ts). */
const POD = '/var/lib/lab-pod';

const FSTAB_FILE = '/etc/fstab';
const FSTAB = `LABEL=boot /boot ext4 x-systemd.device-timeout=900 0 0
LABEL=pod ${POD} ext4 x-systemd.device-timeout=900 0 0
`;
const NETWORK = `[Match]
Name=en*
[Network]
Address=10.0.2.15/24
LinkLocalAddressing=no
`;

/** A port of the machine that leads to one of the host's loopback, of which the second disk knows the number. */
const forwarded = (name: string, listen: string, portVariable: string): LayerEntry[] => [
  ...enabledUnit(`${name}.socket`, `[Socket]\nListenStream=${listen}\n`, 'sockets.target'),
  text(
    `/usr/lib/systemd/system/${name}.service`,
    `[Unit]
RequiresMountsFor=${POD}
[Service]
EnvironmentFile=${POD}/ports
ExecStart=/lib/systemd/systemd-socket-proxyd 10.0.2.2:\${${portVariable}}
`,
  ),
];

/**
 * What a kubelet makes of the DaemonSet: the image's root, the host's root and process ids, a service account. It
 * doesn't require /boot, which is unmounted where nobody has used it for two minutes: that would stop it.
 *
 * @param more arguments.
 */
const daemonUnit = (more: readonly string[]) => `[Unit]
RequiresMountsFor=${POD}
Wants=boot.mount
After=boot.mount kubelet.service
[Service]
RootDirectory=${POD}/image
MountAPIVFS=yes
MountFlags=slave
BindPaths=/:/host
BindReadOnlyPaths=${POD}/service-account:/var/run/secrets/kubernetes.io/serviceaccount
Environment=NODE_NAME=${NODE} POD_NAMESPACE=${DEFAULT_NAMESPACE} 'NODE_OPTIONS=--max-semi-space-size=1 --expose-gc'
Environment=KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=${API_PORT}
Environment=NODE_COMPILE_CACHE=/shale/.compile-cache
ExecStart=/shale/node_modules/node/bin/node --disable-warning=ExperimentalWarning /shale/cli/dist/main.mjs daemon --host-root /host --insecure-registry ${REGISTRY_IN_GUEST} --action-limit 120 --health-check-limit 60 --log-level debug${more.map((word) => ` ${word}`).join('')}
Restart=always
StandardOutput=journal+console
StandardError=journal+console
`;

/** Work of a distribution that nobody here waits for, and every boot would. */
const MASKED = [
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer'],
  ...['e2scrub_reap.service', 'fstrim.timer', 'getty.target', 'systemd-networkd-wait-online.service'],
  // It unpacks the initramfs at each shutdown.
  'dracut-shutdown.service',
];

/**
 * @param daemonArguments more of them.
 * @returns what the machine's stock image has above Debian, so that a daemon runs there and reaches what it has to.
 */
export const virtualMachineLayer = (...daemonArguments: readonly string[]): readonly LayerEntry[] => [
  text(FSTAB_FILE, FSTAB),
  text('/etc/systemd/network/10-lab.network', NETWORK),
  link(
    '/etc/systemd/system/multi-user.target.wants/systemd-networkd.service',
    '/usr/lib/systemd/system/systemd-networkd.service',
  ),
  ...forwarded('lab-registry', REGISTRY_IN_GUEST, 'REGISTRY_PORT'),
  ...forwarded('lab-api-server', `127.0.0.1:${API_PORT}`, 'API_PORT'),
  ...enabledUnit(DAEMON_SERVICE, daemonUnit(daemonArguments)),
  // udev starts it when its port appears, which was there before a soft reboot.
  link(
    '/etc/systemd/system/multi-user.target.wants/qemu-guest-agent.service',
    '/usr/lib/systemd/system/qemu-guest-agent.service',
  ),
  ...MASKED.map((name) => link(`/etc/systemd/system/${name}`, '/dev/null')),
];

export const VIRTUAL_MACHINE_LAYER = virtualMachineLayer();

/** @param layer of virtualMachineLayer. @param change of its fstab(5). */
export function withFileSystems(
  layer: readonly LayerEntry[],
  change: (fstab: string) => string,
): readonly LayerEntry[] {
  return [...layer.filter(({ path }) => path !== FSTAB_FILE), text(FSTAB_FILE, change(FSTAB))];
}

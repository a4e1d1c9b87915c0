import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { Package } from '../../../image/contents/package.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';

export const STOCK_KERNEL = '6.12.57-shale';

/** By version: what stands in for its binaries takes a while to compute. */
const IMAGES = new Map<string, readonly LayerEntry[]>();

/**
 * The operating system that the sandbox's nodes come with: the skeleton of an image-based distribution, with the files,
 * units and links that MachineConfigs usually touch. Nothing in it can be executed; a directory node has no processes
 * of its own. The same bytes every time.
 *
 * @param version of the distribution (os-release's VERSION_ID); another version is another image.
 */
export function stockImage(version = '1'): readonly LayerEntry[] {
  const made = IMAGES.get(version) ?? [...directories(), ...links(), ...files(version)];
  IMAGES.set(version, made);
  return made;
}

function directories(): LayerEntry[] {
  const modes: Readonly<Record<string, number>> = { '/var': 0o755, '/tmp': 0o1777 };
  const names = [
    '/boot',
    '/dev',
    '/etc',
    '/proc',
    '/run',
    '/sys',
    '/sysroot',
    '/tmp',
    '/usr',
    '/usr/bin',
    '/usr/share',
    '/var',
  ];
  return names.map((path) => ({ type: 'directory', path, mode: modes[path] ?? 0o755, uid: 0, gid: 0 }));
}

/** As ostree's "Adapting existing systems" asks for: everything that changes is under /var or /etc. */
function links(): LayerEntry[] {
  const targets: Readonly<Record<string, string>> = {
    '/bin': 'usr/bin',
    '/home': 'var/home',
    '/lib': 'usr/lib',
    '/mnt': 'var/mnt',
    '/opt': 'var/opt',
    '/ostree': 'sysroot/ostree',
    '/root': 'var/roothome',
    '/sbin': 'usr/bin',
    '/srv': 'var/srv',
    '/usr/local': '../var/usrlocal',
    '/etc/os-release': '../usr/lib/os-release',
    '/etc/localtime': '../usr/share/zoneinfo/UTC',
    '/etc/systemd/system/multi-user.target.wants/chronyd.service': '/usr/lib/systemd/system/chronyd.service',
    '/etc/systemd/system/multi-user.target.wants/crio.service': '/usr/lib/systemd/system/crio.service',
    '/etc/systemd/system/multi-user.target.wants/kubelet.service': '/usr/lib/systemd/system/kubelet.service',
    '/etc/systemd/system/multi-user.target.wants/sshd.service': '/usr/lib/systemd/system/sshd.service',
  };
  return Object.entries(targets).map(([path, target]) => ({ type: 'symlink', path, target, uid: 0, gid: 0 }));
}

function files(version: string): LayerEntry[] {
  return [
    text('/usr/lib/os-release', osRelease(version)),
    text('/etc/passwd', PASSWD),
    text('/etc/group', GROUP),
    text('/etc/shadow', SHADOW, 0o000),
    text('/var/lib/dpkg/status', dpkgStatus(STOCK_PACKAGES)),
    text('/etc/hosts', '127.0.0.1 localhost\n::1 localhost\n'),
    text('/etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    text(
      '/etc/chrony.conf',
      'pool pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n',
    ),
    text(
      '/etc/ssh/sshd_config',
      'Include /etc/ssh/sshd_config.d/*.conf\nPermitRootLogin prohibit-password\nUsePAM yes\n',
      0o600,
    ),
    text('/etc/ssh/sshd_config.d/20-systemd.conf', 'X11Forwarding no\n', 0o600),
    text(
      '/etc/containers/registries.conf',
      'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\n',
    ),
    text('/etc/containers/policy.json', '{"default":[{"type":"insecureAcceptAnything"}]}\n'),
    text('/etc/crio/crio.conf', '[crio.runtime]\nconmon = "/usr/bin/conmon"\n'),
    text(
      '/etc/kubernetes/kubelet.conf',
      'kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n',
    ),
    text('/etc/sysctl.d/README', 'Put local settings here; see sysctl.d(5).\n'),
    text('/usr/lib/sysctl.d/50-default.conf', 'kernel.sysrq = 16\nnet.ipv4.conf.all.rp_filter = 2\n'),
    text('/usr/lib/bootc/kargs.d/00-base.toml', 'kargs = ["quiet", "systemd.unified_cgroup_hierarchy=1"]\n'),
    text('/usr/lib/tmpfiles.d/00-stock.conf', TMPFILES),
    text('/usr/lib/systemd/system/chronyd.service', unit('NTP client/server', '/usr/bin/chronyd -n')),
    text(
      '/usr/lib/systemd/system/crio.service',
      unit('Container Runtime Interface for OCI', '/usr/bin/crio', '/bin/kill -s HUP $MAINPID'),
    ),
    text('/usr/lib/systemd/system/kubelet.service', unit('Kubernetes Kubelet', '/usr/bin/kubelet')),
    text(
      '/usr/lib/systemd/system/sshd.service',
      unit('OpenSSH server daemon', '/usr/bin/sshd -D', '/bin/kill -HUP $MAINPID'),
    ),
    text(
      '/usr/lib/systemd/system/systemd-sysctl.service',
      unit('Apply Kernel Variables', '/usr/lib/systemd/systemd-sysctl'),
    ),
    text(
      '/usr/lib/systemd/system/coreos-update-ca-trust.service',
      unit('Update CA trust', '/usr/bin/update-ca-trust'),
    ),
    noise('/usr/bin/chronyd', 24 * 1024, 0o755),
    noise('/usr/bin/crio', 48 * 1024, 0o755),
    noise('/usr/bin/kubelet', 64 * 1024, 0o755),
    noise('/usr/bin/sshd', 24 * 1024, 0o755),
    noise(`/usr/lib/modules/${STOCK_KERNEL}/vmlinuz`, 128 * 1024),
    noise(`/usr/lib/modules/${STOCK_KERNEL}/initramfs.img`, 96 * 1024),
    noise('/usr/share/zoneinfo/UTC', 114),
  ];
}

/** What the distribution's package manager has installed. */
const STOCK_PACKAGES: readonly Package[] = [
  { name: 'chrony', version: '4.6.1-3', architecture: 'all' },
  { name: 'cri-o', version: '1.33.2-1', architecture: 'all' },
  { name: 'kubelet', version: '1.33.2-1', architecture: 'all' },
];

/** @returns dpkg's list of packages (deb822(5)). */
export function dpkgStatus(packages: readonly Package[]): string {
  const stanzas = packages.map(
    ({ name, version, architecture }) =>
      `Package: ${name}\nStatus: install ok installed\nArchitecture: ${architecture}\nVersion: ${version}\n`,
  );
  return stanzas.join('\n');
}

function osRelease(version: string): string {
  return `ID=stock\nNAME="Stock OS"\nVERSION_ID=${version}\nPRETTY_NAME="Stock OS ${version}"\n`;
}

const PASSWD =
  'root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:Core:/home/core:/bin/bash\nchrony:x:992:991::/var/lib/chrony:/sbin/nologin\n';
const GROUP = 'root:x:0:\nwheel:x:10:core\ncore:x:1000:\nchrony:x:991:\n';
const SHADOW = 'root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n';

/** State that the first boot finds missing: the targets of the top-level links. */
const TMPFILES = `d /var/home 0755 root root -
d /var/home/core 0700 core core -
d /var/lib/chrony 0750 chrony chrony -
d /var/mnt 0755 root root -
d /var/opt 0755 root root -
d /var/roothome 0700 root root -
d /var/srv 0755 root root -
d /var/usrlocal 0755 root root -
d /var/usrlocal/bin 0755 root root -
`;

function unit(description: string, start: string, reload?: string): string {
  const reloadLine = reload === undefined ? '' : `ExecReload=${reload}\n`;
  return `[Unit]\nDescription=${description}\n\n[Service]\nExecStart=${start}\n${reloadLine}\n[Install]\nWantedBy=multi-user.target\n`;
}

function text(path: string, content: string, mode = 0o644): LayerEntry {
  return { type: 'file', path, mode, uid: 0, gid: 0, content: Buffer.from(content) };
}

/** Stands in for a binary: as incompressible as one, and the same each time. */
function noise(path: string, size: number, mode = 0o644): LayerEntry {
  const blocks: Buffer[] = [];
  for (let index = 0; index * 32 < size; index += 1) {
    blocks.push(createHash('sha256').update(`${path} ${index}`).digest());
  }
  return { type: 'file', path, mode, uid: 0, gid: 0, content: Buffer.concat(blocks).subarray(0, size) };
}

/** Debian's busybox-static: one program without libraries, which is a shell and its usual commands. */
const BUSYBOX = ['/usr/bin/busybox', '/bin/busybox'];
const COMMANDS = [
  'cat',
  'chmod',
  'cp',
  'echo',
  'env',
  'grep',
  'ls',
  'mkdir',
  'mv',
  'rm',
  'sh',
  'sleep',
  'touch',
  'wc',
];

/** @returns why an image can't be given a shell on this machine; undefined when it can. */
export function shellObstacle(): string | undefined {
  return staticBusybox() === undefined ? 'no shell for images (package busybox-static)' : undefined;
}

/**
 * @returns entries that give an image a shell, so that commands can run in it.
 * @throws Error where there is none.
 */
export function shellEntries(): readonly LayerEntry[] {
  const content = staticBusybox();
  if (content === undefined) throw new Error(shellObstacle());
  const owner = { uid: 0, gid: 0 };
  return [
    { type: 'file', path: '/usr/bin/busybox', mode: 0o755, ...owner, content },
    ...COMMANDS.map(
      (name): LayerEntry => ({ type: 'symlink', path: `/usr/bin/${name}`, target: 'busybox', ...owner }),
    ),
  ];
}

/** The package busybox has one that needs libraries, under the same name. */
function staticBusybox(): Buffer | undefined {
  const file = BUSYBOX.find((name) => existsSync(name));
  const content = file === undefined ? undefined : readFileSync(file);
  return content?.includes('/ld-linux') === true ? undefined : content;
}

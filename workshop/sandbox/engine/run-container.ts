import { existsSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type RunningProcess, startProcess } from '@shale/apiserver/control-plane/child-process.ts';
import { execa } from 'execa';
import type { Container, Pod } from '../../../api/kubernetes.ts';

/** A container that runs Podman, in namespaces of its own. */
export interface ContainerToRun {
  readonly pod: Pod;
  readonly container: Container;
  /** Directories of the pod's volumes, by their names. */
  readonly volumes: ReadonlyMap<string, string>;
  /** Of this container alone; it is removed with it. */
  readonly dir: string;
  readonly logFile: string;
  readonly onExit: Parameters<typeof startProcess>[0]['onExit'];
}

interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly capabilities?: { readonly add?: readonly string[] };
}
interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

/**
 * Where the image has newuidmap with file capabilities, as Fedora's does; Debian's is setuid root, which needs more
 * rights.
 */
const ID_TOOLS = '/opt/id-tools';
const ID_CAPABILITIES = { newuidmap: 'cap_setuid=ep', newgidmap: 'cap_setgid=ep' } as const;
const PATH = `${ID_TOOLS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;

/**
 * Runs a container as a kubelet would, with the machine's programs in the place of its image: the user, capabilities
 * and volumes of its spec, and nothing else of the machine but /usr, read-only. It reaches no network.
 *
 * @returns the process that ends with all that the container started. @throws Error when runc can't be started.
 */
export async function runContainer(run: ContainerToRun): Promise<RunningProcess> {
  const { pod, container, dir, logFile, onExit } = run;
  const id = `shale-${pod.metadata.uid ?? pod.metadata.name}-${container.name}`;
  const state = ['--root', path.join(dir, 'runc')];
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  const user = userOf(pod, container);
  await writeRoot(path.join(dir, 'rootfs'), user);
  await writeFile(path.join(dir, 'config.json'), JSON.stringify(runtimeConfig(run, user)));
  const running = await startProcess({
    name: id,
    command: 'unshare',
    // What the container started ends with the process that started it, however that ends.
    args: [
      ...['--pid', '--mount', '--fork', '--kill-child', '--mount-proc', '--'],
      ...['runc', ...state, 'run', '--bundle', dir, id],
    ],
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
    logFile,
    onExit,
  });
  const kill = async () => {
    // unshare does not pass SIGTERM on; nothing of the container's is kept.
    await running.kill();
    await execa('runc', [...state, 'delete', '--force', id], { reject: false });
    await rm(dir, { recursive: true, force: true, maxRetries: 20 });
  };
  return { ...running, stop: kill, kill };
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

function userOf(pod: Pod, { securityContext }: Container): User {
  const own = { ...pod.spec.securityContext, ...(securityContext as object | undefined) } as SecurityContext;
  return { uid: own.runAsUser ?? 0, gid: own.runAsGroup ?? 0 };
}

/** What an image with Podman has beside its programs. */
async function writeRoot(root: string, { uid, gid }: User): Promise<void> {
  const home = path.join(root, 'home/podman');
  const share = path.join(home, '.local/share/containers');
  const inside = [
    'usr',
    'proc',
    'sys',
    'dev',
    'run',
    'tmp',
    'var/tmp',
    'var/lib',
    'etc/containers',
    ID_TOOLS,
  ];
  for (const name of inside) await mkdir(path.join(root, name), { recursive: true });
  await mkdir(share, { recursive: true });
  await chmod(path.join(root, 'tmp'), 0o1777);
  for (const name of ['.', '.local', '.local/share', '.local/share/containers']) {
    await chown(path.join(home, name), uid, gid);
  }
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${name}`, path.join(root, name));
  const subordinate = 'podman:1:999\npodman:1001:64535\n';
  const files = {
    passwd: `root:x:0:0::/root:/bin/sh\npodman:x:${uid}:${gid}::/home/podman:/bin/sh\n`,
    group: `root:x:0:\npodman:x:${gid}:\n`,
    subuid: subordinate,
    subgid: subordinate,
    hosts: '127.0.0.1 localhost\n',
    'resolv.conf': '',
    'containers/policy.json': '{"default":[{"type":"insecureAcceptAnything"}]}',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(root, 'etc', name), text);
  if (existsSync('/etc/ld.so.cache')) await copyFile('/etc/ld.so.cache', path.join(root, 'etc/ld.so.cache'));
  for (const [tool, capability] of Object.entries(ID_CAPABILITIES)) {
    const copy = path.join(root, ID_TOOLS, tool);
    await copyFile(path.join('/usr/bin', tool), copy);
    await chmod(copy, 0o755);
    const env = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` };
    await execa('setcap', [capability, copy], { env });
  }
}

/** OCI runtime-spec, config.md. */
function runtimeConfig({ pod, container, volumes }: ContainerToRun, { uid, gid }: User): object {
  const { capabilities } = (container.securityContext ?? {}) as SecurityContext;
  const mount = (destination: string, type: string, source: string, options: readonly string[]) => ({
    destination,
    type,
    source,
    options,
  });
  const volumeMounts = ((container.volumeMounts ?? []) as readonly VolumeMount[]).map(
    ({ name, mountPath, readOnly = false }) =>
      mount(mountPath, 'bind', volumes.get(name) ?? '', ['bind', readOnly ? 'ro' : 'rw']),
  );
  const env = (container.env ?? []).map(({ name, value = '' }) => `${name}=${value}`);
  return {
    ociVersion: '1.0.2',
    hostname: pod.metadata.name,
    root: { path: 'rootfs', readonly: false },
    process: {
      terminal: false,
      user: { uid, gid },
      args: [...(container.command ?? []), ...(container.args ?? [])],
      env: [`PATH=${PATH}`, 'HOME=/home/podman', ...env],
      cwd: '/',
      capabilities: { bounding: (capabilities?.add ?? []).map((name) => `CAP_${name}`) },
      noNewPrivileges: false,
    },
    mounts: [
      mount('/proc', 'proc', 'proc', []),
      mount('/dev', 'tmpfs', 'tmpfs', ['nosuid', 'strictatime', 'mode=755', 'size=65536k']),
      mount('/dev/pts', 'devpts', 'devpts', [
        'nosuid',
        'noexec',
        'newinstance',
        'ptmxmode=0666',
        'mode=0620',
      ]),
      mount('/dev/shm', 'tmpfs', 'shm', ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k']),
      mount('/sys', 'sysfs', 'sysfs', ['nosuid', 'noexec', 'nodev', 'ro']),
      mount('/usr', 'bind', '/usr', ['rbind', 'ro']),
      mount('/tmp', 'tmpfs', 'tmpfs', ['nosuid', 'nodev', 'mode=1777']),
      ...volumeMounts,
    ],
    linux: {
      namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      rootfsPropagation: 'shared',
      resources: { devices: [{ allow: false, access: 'rwm' }] },
    },
  };
}

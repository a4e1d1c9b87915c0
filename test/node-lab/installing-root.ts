import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../daemon/os/os-command.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import type { NodeToInstall } from './lab-node.ts';

const INSTALL_MS = 600_000;

/**
 * A root file system to install from, at `root` of the directory that it changes to: what is written there is gone with
 * the mounts. It pulls from the lab's registry without TLS. $1: the root file system, $2: where to mount, $3: the
 * registry's name, then where it is.
 */
const MOUNT = `set -e
mkdir "$2/install"
mount -t tmpfs -o mode=755 scratch "$2/install"
cd "$2/install"
mkdir upper work root
mount -t overlay -o "lowerdir=$1,upperdir=$PWD/upper,workdir=$PWD/work" overlay root
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mkdir -p root/target root/etc/containers/registries.conf.d
printf '[[registry]]\\nprefix = "%s"\\nlocation = "%s"\\ninsecure = true\\n' $3 > root/etc/containers/registries.conf.d/50-lab.conf
`;

/**
 * Installs a machine from a root file system that has the installer, among mounts and processes of its own.
 *
 * @param script of a shell that goes on where MOUNT ends; $2: the machine's directory, $4: its sysroot, $5: the image;
 *   then the values.
 * @returns the sysroot. @throws OsCommandError with what it wrote.
 */
export async function installFromRoot(
  { dir, image, archive, registry, signal }: Omit<NodeToInstall, 'authFile'>,
  script: string,
  values: readonly string[],
): Promise<string> {
  const { sysroot } = directoryNodeLayout(dir);
  await mkdir(sysroot, { recursive: true });
  const name = image.slice(0, image.indexOf('/'));
  const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
  const all = [archive.rootfs, dir, `${name} ${registry ?? name}`, sysroot, image, ...values];
  const command = [...own, 'sh', '-c', `${MOUNT}${script}`, 'sh', ...all] as const;
  await osCommandRunner()([...command], { timeoutMs: INSTALL_MS, signal });
  // Where the mounts were, which ended with the command.
  await rm(path.join(dir, 'install'), { recursive: true, force: true });
  return sysroot;
}

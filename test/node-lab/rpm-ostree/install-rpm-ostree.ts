import { mkdir } from 'node:fs/promises';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { nameNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { HOST_ARGUMENTS, STOCK_ARGUMENTS } from '../../fixtures/backend-contract/bench.ts';
import type { NodeToInstall } from '../lab-node.ts';

const INSTALL_MS = 600_000;

/**
 * `ostree container image deploy`, as the installers of rpm-ostree's hosts use it, from a root file system that has rpm-ostree.
 * $1: the root file system, $2: a place for what is mounted, $3: the sysroot, $4: the image, $5: its registry; then the kernel's
 * arguments, since rpm-ostree takes none from images.
 */
const INSTALL = `set -e
mkdir "$2/install"
mount -t tmpfs -o mode=755 scratch "$2/install"
cd "$2/install"
mkdir upper work root
mount -t overlay -o "lowerdir=$1,upperdir=$PWD/upper,workdir=$PWD/work" overlay root
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mkdir -p root/target root/etc/containers/registries.conf.d
printf '[[registry]]\\nlocation = "%s"\\ninsecure = true\\n' "$5" > root/etc/containers/registries.conf.d/50-lab.conf
mount --bind "$3" root/target
image=$4
shift 5
exec chroot root env --unset=container sh -ec '
image=$1
shift
ostree admin init-fs --modern /target
ostree admin os-init --sysroot=/target default
ostree --repo=/target/ostree/repo config set sysroot.bootloader none
ostree --repo=/target/ostree/repo config set sysroot.readonly true
ostree --repo=/target/ostree/repo config set core.fsync false
ostree container image deploy --sysroot=/target --stateroot=default \\
  --imgref="ostree-unverified-registry:$image" "$@"' sh "$image" "$@"`;

/** Installs a machine by the rpm-ostree of its own image. @throws OsCommandError with what it wrote. */
export async function installByRpmOstree({ dir, image, archive, signal }: NodeToInstall): Promise<void> {
  const { sysroot } = directoryNodeLayout(dir);
  await mkdir(sysroot, { recursive: true });
  const registry = image.slice(0, image.indexOf('/'));
  const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
  const kernelArguments = [...HOST_ARGUMENTS, ...STOCK_ARGUMENTS].map((argument) => `--karg=${argument}`);
  const values = [archive.rootfs, dir, sysroot, image, registry, ...kernelArguments];
  await osCommandRunner()([...own, 'sh', '-c', INSTALL, 'sh', ...values], { timeoutMs: INSTALL_MS, signal });
  await nameNode(dir, 'test');
}

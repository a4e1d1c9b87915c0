import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { OSTREE_ARGUMENT, parseBootloaderEntry } from '../../../daemon/os/ostree/deployments.ts';
import { nameNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import type { NodeToInstall } from '../lab-node.ts';

const INSTALL_MS = 600_000;
const DISK = '4G';
/** The host's own, as an installer passes them. */
const HOST_ARGUMENTS = ['root=LABEL=root', 'rw', 'console=ttyS0'];

/** How ostree sets up the root: with composefs, and /sysroot read-only, as bootc's base images have it. */
export const PREPARE_ROOT = '[composefs]\nenabled = yes\n[sysroot]\nreadonly = true\n';

/**
 * `bootc install to-filesystem` from a root file system that has bootc, onto a disk in a file; what is there then is copied.
 * The disk is one because bootc asks for the UUID of what it installs to. $1: the root file system, $2: a place for the disk,
 * $3: where the copy goes, $4: the image, $5: the disk's size, $6: prepare-root.conf, $7: the registry,
 * $8: credentials for it.
 */
const INSTALL = `set -e
mkdir "$2/disk"
mount -t tmpfs -o mode=755 scratch "$2/disk"
cd "$2/disk"
mkdir upper work root
mount -t overlay -o "lowerdir=$1,upperdir=$PWD/upper,workdir=$PWD/work" overlay root
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mkdir -p root/target root/copy root/usr/lib/ostree root/etc/ostree root/etc/containers/registries.conf.d
printf '%s' "$6" > root/usr/lib/ostree/prepare-root.conf
printf '[[registry]]\\nlocation = "%s"\\ninsecure = true\\n' "$7" > root/etc/containers/registries.conf.d/50-lab.conf
(umask 077; printf '%s' "$8" > root/etc/ostree/auth.json)
truncate --size "$5" "$2/disk.img"
mkfs.ext4 -q -F -O verity -L root "$2/disk.img"
mount -o loop "$2/disk.img" root/target
rmdir root/target/lost+found
mount --bind "$3" root/copy
exec chroot root env --unset=container sh -ec '
bootc install to-filesystem --disable-selinux --bootloader=none --generic-image --skip-finalize --skip-fetch-check \\
  --root-mount-spec=LABEL=root --source-imgref="docker://$1" --target-imgref="$1" /target
cp -a /target/. /copy/' sh "$4"`;

/** Installs a machine by the bootc of its own image. @throws OsCommandError with what bootc wrote. */
export async function installByBootc({
  dir,
  image,
  archive,
  authFile = '{}',
  signal,
}: NodeToInstall): Promise<void> {
  const { sysroot } = directoryNodeLayout(dir);
  await mkdir(sysroot, { recursive: true });
  const registry = image.slice(0, image.indexOf('/'));
  const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
  const values = [archive.rootfs, dir, sysroot, image, DISK, PREPARE_ROOT, registry, authFile];
  await osCommandRunner()([...own, 'sh', '-c', INSTALL, 'sh', ...values], { timeoutMs: INSTALL_MS, signal });
  await rm(path.join(dir, 'disk'), { recursive: true, force: true });
  await rm(path.join(dir, 'disk.img'), { force: true });
  await arrangeArguments(sysroot);
  await nameNode(dir, 'test');
}

/** bootc appends the host's own arguments to the image's, and Shale's tests have them before. */
async function arrangeArguments(sysroot: string): Promise<void> {
  const directory = path.join(sysroot, 'boot/loader/entries');
  for (const name of await readdir(directory)) {
    const file = path.join(directory, name);
    const text = await readFile(file, 'utf8');
    const entry = parseBootloaderEntry(name, text);
    if (entry === undefined) continue;
    const ofImage = entry.kernelArguments.filter((argument) => !HOST_ARGUMENTS.includes(argument));
    const all = [...HOST_ARGUMENTS, ...ofImage, `${OSTREE_ARGUMENT}${entry.deploymentLink}`];
    await writeFile(file, text.replace(/^options .*$/m, `options ${all.join(' ')}`));
  }
}

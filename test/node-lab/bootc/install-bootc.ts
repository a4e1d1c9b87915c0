import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { OSTREE_ARGUMENT, parseBootloaderEntry } from '../../../daemon/os/ostree/deployments.ts';
import { nameNode } from '../../../workshop/sandbox/node/create.ts';
import { installFromRoot } from '../installing-root.ts';
import type { NodeToInstall } from '../lab-node.ts';
import { PREPARE_ROOT } from '../tool-entries.ts';

const DISK = '4G';
/** The host's own, as an installer passes them. */
export const HOST_ARGUMENTS: readonly string[] = ['root=LABEL=root', 'rw', 'console=ttyS0'];

/**
 * `bootc install to-filesystem` from a root file system that has bootc, onto a disk in a file; what is there then is
 * copied. The disk is one because bootc asks for the UUID of what it installs to. After what installFromRoot gives, $6:
 * the disk's size, $7: prepare-root.conf, $8: credentials for the registry.
 */
const INSTALL = `mkdir -p root/copy root/usr/lib/ostree root/etc/ostree
printf '%s' "$7" > root/usr/lib/ostree/prepare-root.conf
(umask 077; printf '%s' "$8" > root/etc/ostree/auth.json)
truncate --size "$6" "$2/disk.img"
mkfs.ext4 -q -F -O verity -L root "$2/disk.img"
mount -o loop "$2/disk.img" root/target
rmdir root/target/lost+found
mount --bind "$4" root/copy
exec chroot root env --unset=container sh -ec '
bootc install to-filesystem --disable-selinux --bootloader=none --generic-image --skip-finalize --skip-fetch-check \\
  --root-mount-spec=LABEL=root --source-imgref="docker://$1" --target-imgref="$1" /target
cp -a /target/. /copy/' sh "$5"`;

/** Installs a machine by the bootc of its own image. @throws OsCommandError with what bootc wrote. */
export async function installByBootc({ authFile = '{}', ...node }: NodeToInstall): Promise<void> {
  const { dir } = node;
  const sysroot = await installFromRoot(node, INSTALL, [DISK, PREPARE_ROOT, authFile]);
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

import { nameNode } from '../../../workshop/sandbox/node/create.ts';
import { HOST_ARGUMENTS, STOCK_ARGUMENTS } from '../../fixtures/backend-contract/bench.ts';
import { installFromRoot } from '../installing-root.ts';
import type { NodeToInstall } from '../lab-node.ts';

/**
 * `ostree container image deploy`, as the installers of rpm-ostree's hosts use it, from a root file system that has
 * rpm-ostree. After what installFromRoot gives, the kernel's arguments: rpm-ostree takes none from images.
 */
const INSTALL = `mount --bind "$4" root/target
image=$5
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
export async function installByRpmOstree(node: NodeToInstall): Promise<void> {
  const kernelArguments = [...HOST_ARGUMENTS, ...STOCK_ARGUMENTS].map((argument) => `--karg=${argument}`);
  await installFromRoot(node, INSTALL, kernelArguments);
  await nameNode(node.dir, 'test');
}

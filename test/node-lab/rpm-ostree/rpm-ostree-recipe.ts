import { shellWords } from '../../../daemon/os/os-command.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { COMING_RECIPE } from '../prepared-root.ts';
import { copyFilesHook } from '../root-hooks.ts';

/** What it is linked with in Debian's coming release; libdnf is part of the program. */
const LIBRARIES = [
  'libarchive13t64',
  'libgpgme45',
  'libjson-c5',
  'libjson-glib-1.0-0',
  'libmodulemd2',
  'libpolkit-gobject-1-0',
  'librepo0',
  'librpm10',
  'libsmartcols1',
  'libsolv1',
  'libsolvext1',
  'libsqlite3-0',
];

/**
 * It pulls by skopeo, asks polkit whether a caller may, runs programs of what it stages by bubblewrap, and keeps what
 * it has hard links to from being written to by fuse. createrepo_c and the policy are for the packages of the lab.
 */
const PROGRAMS = [
  'bubblewrap',
  'createrepo-c',
  'fuse3',
  'polkitd',
  'rpm',
  'selinux-policy-default',
  'skopeo',
];

/** Where the machine has RPM packages to install. */
export const REPOSITORY = '/usr/share/lab-rpms';
/** Of the image, since rpm-ostree expects that its database of packages is not empty. */
const OF_IMAGE = ['lab-base', 'lab-extra'];
const OF_REPOSITORY = ['htop', 'sysstat', 'usbguard'];

/**
 * Builds RPM packages that have one file each, as rpm 4 did: rpm-ostree can't read those of rpm 6. $1: the root file
 * system, $2: where in it they go, then their names.
 */
const BUILD = `set -e
cd "$1"
to=$2
mkdir -p ".$to"
shift 2
for name do
  printf '%s\\n' "Name: $name" 'Version: 1' 'Release: 1' 'Summary: none' 'License: none' 'BuildArch: noarch' \\
    '%description' '%install' 'mkdir -p %{buildroot}/usr/lib/packages' \\
    "echo installed > %{buildroot}/usr/lib/packages/$name" '%files' "/usr/lib/packages/$name" > tmp/lab.spec
  chroot . rpmbuild -bb --quiet --define '_topdir /tmp/rpm' --define '_rpmformat 4' --define '_binary_payload w9.gzdio' \\
    --define "_rpmdir $to" --define '_build_name_fmt %%{NAME}.rpm' /tmp/lab.spec
done
rm -r tmp/rpm tmp/lab.spec`;

/** @returns hooks that have the root file system's packages in its database, and others in a repository. */
function packageHooks(): readonly string[] {
  const build = (to: string, names: readonly string[]) =>
    `${shellWords(['sh', '-c', BUILD, 'sh'])} "$1" ${shellWords([to, ...names])}`;
  return [
    build('/tmp/of-image', OF_IMAGE),
    'chroot "$1" sh -c "rpm --dbpath /usr/share/rpm --nodeps --install /tmp/of-image/*.rpm && rm -r /tmp/of-image"',
    build(REPOSITORY, OF_REPOSITORY),
    `chroot "$1" createrepo_c --quiet ${REPOSITORY}`,
  ];
}

/**
 * @param files of rpm-ostree; another program makes another root file system. @returns what Debian's coming release
 * needs.
 */
export function rpmOstreeRecipe(files: string): RootfsRecipe {
  // It pulls as this user, which systemd would make for it; the contract's nsswitch.conf knows none that systemd makes.
  const user = `systemd-sysusers --root="$1" --inline 'u rpm-ostree -'`;
  // rpm-ostree asks for the release, which Debian's coming one doesn't say, before it reads a repository.
  const release = `echo VERSION_ID=0 >> "$1"/usr/lib/os-release`;
  // It labels packages, whether the kernel has SELinux or not.
  const policy = `printf 'SELINUX=permissive\\nSELINUXTYPE=default\\n' > "$1"/etc/selinux/config`;
  const own = [user, release, policy, ...packageHooks()].map((hook) => `--customize-hook=${hook}`);
  return {
    ...COMING_RECIPE,
    packages: [...COMING_RECIPE.packages, ...LIBRARIES, ...PROGRAMS],
    hooks: [...COMING_RECIPE.hooks, copyFilesHook(files, ['usr/bin/rpm-ostree']), ...own],
  };
}

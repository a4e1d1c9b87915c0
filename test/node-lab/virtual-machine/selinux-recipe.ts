import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { text } from '../lab-updates.ts';
import { DRACUT, recipeWith } from './recipe.ts';
import { VIRTUAL_MACHINE_LAYER, withFileSystems } from './stock-layer.ts';

/**
 * Of Debian's policy, whose 400 modules would take emulation minutes to read. Its base has a user of the module
 * xserver, which needs xdg.
 */
const MODULES = ['base', 'unconfined', 'unprivuser', 'ssh', 'cron', 'getty', 'hostname', 'xserver', 'xdg'];

/** As Fedora's policy has it for hosts of ostree: below these, files have the labels of the directory's usual place. */
const ALIASES = `/var/home /home
/var/roothome /root
/var/usrlocal /usr/local
/var/opt /opt
/var/mnt /mnt
/var/srv /srv
`;

/**
 * What Debian's policy lacks, as it isn't made for hosts of ostree, nor for this lab. Anybody may follow the links into
 * /var (`LINKS` of rootfs-archive.ts); tmpfiles may make any directory there, and ostree's generator the unit that
 * mounts it; file systems may be mounted with a label; the lab's forwarded ports may be any; and what runs as an
 * unconfined service, as the daemon does, may compile code, as JavaScript is.
 */
const HOST_OF_OSTREE = [
  ...['usr_t', 'home_root_t', 'mnt_t', 'default_t', 'var_t', 'root_t'].map(
    (type) => `(allow domain ${type} (lnk_file (getattr read)))`,
  ),
  '(typeattributeset files_unconfined_type (systemd_tmpfiles_t systemd_generator_t))',
  '(typeattributeset can_change_object_identity (systemd_tmpfiles_t))',
  '(allow mount_t file_type (filesystem (relabelfrom relabelto)))',
  '(typeattributeset corenet_unconfined_type (systemd_socket_proxyd_t))',
  '(allow initrc_t self (process (execmem)))',
].join('\n');

/**
 * A machine with Debian's SELinux policy, in enforcing mode. Its kernel needs arguments for that, too: `SELINUX_LAYER`
 * has them. When ostree deploys it on a running host, it has semodule see to the policy of the new /etc in bwrap.
 */
export const SELINUX_RECIPE: RootfsRecipe = recipeWith({
  packages: ['selinux-policy-default', 'policycoreutils', 'selinux-utils', 'bubblewrap', 'passwd'],
  dracut: DRACUT,
  hooks: [
    // The modules of the policy belong to the image, as on Fedora: an image of ostree has nothing in /var.
    '--customize-hook=cd "$1" && mv var/lib/selinux/default/* etc/selinux/default/' +
      ' && echo store-root=/etc/selinux >> etc/selinux/semanage.conf' +
      ' && sed -i s/^SELINUX=.*/SELINUX=enforcing/ etc/selinux/config',
    `--customize-hook=cat >> "$1"/etc/selinux/default/contexts/files/file_contexts.subs_dist <<'END'\n${ALIASES}END`,
    '--customize-hook=cd "$1"/etc/selinux/default/active/modules/100' +
      ` && for module in *; do case " ${MODULES.join(' ')} " in *" $module "*) ;; *) rm -r "$module";; esac; done` +
      ' && rm -rf ../disabled/* "$1"/usr/share/selinux/default' +
      ` && printf %s '${HOST_OF_OSTREE}' > "$1"/tmp/lab.cil` +
      ' && chroot "$1" semodule --store=default --noreload --install=/tmp/lab.cil && rm "$1"/tmp/lab.cil',
    '--customize-hook=chroot "$1" useradd --uid=1000 --no-create-home --home-dir=/home/core core',
    // Installing a machine writes them, where no SELinux gives them a label: they have the image's, if it has them.
    '--customize-hook=touch "$1"/etc/hostname "$1"/etc/machine-id',
  ],
});

/** A label for all files of a file system that nobody has labelled (mount(8)). */
const withLabel = (type: string) => `context=system_u:object_r:${type}:s0`;

/**
 * What its stock image has above Debian. Shale's image is mounted with a label for programs, as a container runtime
 * does, and systemd then starts the daemon as initrc_t: with this policy the unconfined domain of services, as a
 * privileged container's (spc_t) is where the policy has one.
 */
export const SELINUX_LAYER: readonly LayerEntry[] = [
  ...withFileSystems(VIRTUAL_MACHINE_LAYER, (fstab) =>
    fstab
      .replace(/^(LABEL=boot .* ext4) /m, `$1 ${withLabel('boot_t')},`)
      .replace(/^(LABEL=pod .* ext4) /m, `$1 ${withLabel('bin_t')},`),
  ),
  // Debian's kernel has AppArmor on by default.
  text(
    '/usr/lib/bootc/kargs.d/10-selinux.toml',
    'kargs = ["security=selinux", "selinux=1", "enforcing=1"]\n',
  ),
  text('/usr/lib/tmpfiles.d/lab-core.conf', 'd /var/home/core 0700 core core -\n'),
];

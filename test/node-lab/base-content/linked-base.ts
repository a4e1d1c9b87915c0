import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';

/** Whose home and keys the base knows. */
export const USER = 'core';
/** The owner of what a service has; no name is needed. */
export const SERVICE_UID = 998;

/**
 * What current distributions have and Debian hasn't: links in place of directories in /etc and /usr, directories that
 * are closed, of another owner, or setgid. $1: the root file system.
 */
const MAKE = `set -e
cd "$1"
into() { mkdir -p "$2"; if test -d "$1" && ! test -L "$1"; then mv -n "$1"/* "$2"/ 2>/dev/null || true; rm -r "$1"; fi; }
mkdir -p etc/ssl
into etc/ssl/certs etc/pki/tls/certs
ln -s ../pki/tls/certs etc/ssl/certs
echo 'base ca' > etc/pki/tls/certs/base-ca.pem
into etc/init.d etc/rc.d/init.d
ln -s /etc/rc.d/init.d etc/init.d
into usr/lib64 usr/lib
ln -s lib usr/lib64
into usr/sbin usr/bin
ln -s bin usr/sbin
rm -rf etc/sudoers.d etc/NetworkManager etc/polkit-1/rules.d
mkdir -p etc/sudoers.d etc/NetworkManager/system-connections etc/polkit-1/rules.d etc/lab-shared etc/lab-modes
echo '# base' > etc/sudoers.d/base
chmod 440 etc/sudoers.d/base
chmod 750 etc/sudoers.d
chmod 700 etc/NetworkManager/system-connections
chown ${SERVICE_UID}:0 etc/polkit-1/rules.d
chmod 700 etc/polkit-1/rules.d
echo '${USER}:x:1000:1000::/home/${USER}:/bin/sh' >> etc/passwd
echo '${USER}:x:1000:' >> etc/group
chown 0:1000 etc/lab-shared
chmod 2775 etc/lab-shared
printf '%s\\n' 'd /var/home/${USER} 0700 ${USER} ${USER} -' 'd /var/lib/lab-service 0750 ${SERVICE_UID} ${SERVICE_UID} -' \\
  'd /var/lib/lab-shared 2775 root ${USER} -' > usr/lib/tmpfiles.d/lab.conf`;

/** @returns the same operating system, with what Shale's layers meet on the bases of others. */
export function withLinks(recipe: RootfsRecipe): RootfsRecipe {
  const words = MAKE.replaceAll("'", `'\\''`);
  return { ...recipe, hooks: [...recipe.hooks, `--customize-hook=sh -c '${words}' sh "$1"`] };
}

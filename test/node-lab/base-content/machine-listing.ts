import { type Listing, listTree } from '../../differential/listing.ts';

/** What changes while a machine runs, whoever updates it. */
const OWN_LIFE = [
  ...['/boot', '/dev', '/ostree', '/proc', '/run', '/sys', '/sysroot', '/tmp'],
  ...['/usr/etc', '/var/cache', '/var/log', '/var/tmp', '/var/lib/systemd', '/var/lib/shale'],
  // Of skopeo, by which tools pull; of ostree, beside a deployment; when systemd has seen another /usr.
  ...['/var/lib/containers', '/.ostree.cfs', '/etc/.updated', '/var/.updated'],
  // Of rpm-ostree, which writes down each deployment.
  '/var/lib/rpm-ostree',
  // The second disk of a virtual machine, which has its daemon.
  '/var/lib/lab-pod',
];

/** @returns what is left out of a machine's listing, with all below. */
const ofOwnLife = (path: string): boolean => OWN_LIFE.includes(path);

/** @param root of the machine, as seen from outside of it or from its daemon. */
export function listMachine(root: string): Listing {
  // In /usr ostree gives equal files one inode, and those of /etc it copies one by one.
  const countsNames = (path: string) => path.startsWith('/var/lib/lab/');
  return listTree(root, { skip: ofOwnLife, capabilities: false, countsNames });
}

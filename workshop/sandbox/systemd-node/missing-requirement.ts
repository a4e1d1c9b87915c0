import { existsSync } from 'node:fs';
import path from 'node:path';

const PROGRAMS: Readonly<Record<string, string>> = {
  'systemd-nspawn': 'systemd-container',
  mmdebstrap: 'mmdebstrap',
  ostree: 'ostree',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
};

/** @returns why no machine with systemd can be booted here, in one line; undefined when one can. */
export function missingForSystemdNodes(uid: number | undefined, searchPath: string): string | undefined {
  if (uid !== 0) return 'machines with systemd need root';
  const directories = [...searchPath.split(':'), '/usr/sbin', '/sbin'];
  const missing = Object.entries(PROGRAMS)
    .filter(([program]) => !directories.some((directory) => existsSync(path.join(directory, program))))
    .map(([, packageName]) => packageName);
  return missing.length === 0
    ? undefined
    : `machines with systemd need these Debian packages: ${[...new Set(missing)].join(' ')}`;
}

import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** Programs that a part of the sandbox runs, each with the Debian package that has it. */
type Programs = Readonly<Record<string, string>>;

const SANDBOX: Programs = {
  'docker-registry': 'docker-registry',
  ostree: 'ostree',
  'systemd-tmpfiles': 'systemd-standalone-tmpfiles',
  setpriv: 'util-linux',
};

const SYSTEMD_NODES: Programs = {
  'systemd-nspawn': 'systemd-container',
  mmdebstrap: 'mmdebstrap',
  ostree: 'ostree',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
};

/** @returns why no sandbox can be started here, in one line that says what to do; undefined when one can. */
export function missingRequirement(uid: number | undefined, searchPath: string): string | undefined {
  if (uid !== 0) return "the sandbox's nodes require root: run the command as root or with sudo";
  const missing = missingPackages(SANDBOX, searchPath);
  return missing.length === 0
    ? undefined
    : `these Debian packages are required and not installed: ${missing.join(' ')}; run make install`;
}

/** @returns why no machine with systemd can be booted here, in one line; undefined when one can. */
export function missingForSystemdNodes(uid: number | undefined, searchPath: string): string | undefined {
  if (uid !== 0) return 'machines with systemd require root';
  const missing = missingPackages(SYSTEMD_NODES, searchPath);
  return missing.length === 0
    ? undefined
    : `machines with systemd require these Debian packages: ${missing.join(' ')}`;
}

function missingPackages(programs: Programs, searchPath: string): string[] {
  const directories = [...searchPath.split(':'), '/usr/sbin', '/sbin'];
  const missing = Object.entries(programs)
    .filter(([program]) => !directories.some((directory) => isExecutable(path.join(directory, program))))
    .map(([, packageName]) => packageName);
  return [...new Set(missing)];
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

import { access, constants } from 'node:fs/promises';
import path from 'node:path';

/** What the sandbox runs that is not Node's, with the Debian package that has it. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'docker-registry': 'docker-registry',
  ostree: 'ostree',
  'systemd-tmpfiles': 'systemd-standalone-tmpfiles',
  setpriv: 'util-linux',
};

/** @returns why no sandbox can be started here, in one line that says what to do; undefined when one can. */
export async function missingRequirement(
  uid: number | undefined,
  searchPath: string,
): Promise<string | undefined> {
  if (uid !== 0) return "the sandbox's nodes need root: run this as root, or with sudo";
  const directories = [...searchPath.split(':'), '/usr/sbin', '/sbin'];
  const missing: string[] = [];
  for (const [program, packageName] of Object.entries(PROGRAMS)) {
    if (!(await isThere(program, directories))) missing.push(packageName);
  }
  return missing.length === 0
    ? undefined
    : `these Debian packages are needed and not installed: ${missing.join(' ')}; make install installs them`;
}

async function isThere(program: string, directories: readonly string[]): Promise<boolean> {
  for (const directory of directories) {
    const found = await access(path.join(directory, program), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}

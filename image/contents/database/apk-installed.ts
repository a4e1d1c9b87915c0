import { type Package, PackageList } from '../package.ts';

/**
 * Reads apk's list of packages (`lib/apk/db/installed`): lines `P:` name, `V:` version, `A:` architecture, and an empty
 * line behind each package.
 *
 * @throws DatabaseError for more packages than any distribution has.
 */
export function parseApkInstalled(text: string): readonly Package[] {
  const list = new PackageList();
  let found: { name?: string; version?: string; architecture?: string } = {};
  const end = () => {
    const { name, version, architecture = '' } = found;
    if (name !== undefined && version !== undefined) list.add({ name, version, architecture });
    found = {};
  };
  for (const line of text.split('\n')) {
    if (line === '') end();
    else if (line.startsWith('P:')) found.name = line.slice(2);
    else if (line.startsWith('V:')) found.version = line.slice(2);
    else if (line.startsWith('A:')) found.architecture = line.slice(2);
  }
  end();
  return list.sorted();
}

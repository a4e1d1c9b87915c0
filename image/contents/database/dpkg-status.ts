import { type Package, PackageList } from '../package.ts';

/** States of dpkg(1) in which a package has no files in the image. */
const WITHOUT_FILES: ReadonlySet<string> = new Set(['not-installed', 'config-files']);
const FIELDS: ReadonlySet<string> = new Set(['Package', 'Version', 'Architecture', 'Status']);

/**
 * Reads dpkg's list of packages (dpkg(1) "/var/lib/dpkg/status", deb822(5)), or a file of status.d, which images of
 * distroless have in its place and which names no status.
 *
 * @throws DatabaseError for more packages than any distribution has.
 */
export function parseDpkgStatus(text: string): readonly Package[] {
  const list = new PackageList();
  let stanza = new Map<string, string>();
  const end = () => {
    const [name, version] = [stanza.get('Package'), stanza.get('Version')];
    const state = stanza.get('Status')?.split(' ').at(-1) ?? 'installed';
    if (name !== undefined && version !== undefined && !WITHOUT_FILES.has(state)) {
      list.add({ name, version, architecture: stanza.get('Architecture') ?? '' });
    }
    stanza = new Map();
  };
  for (const line of text.split('\n')) {
    if (line.trim() === '') end();
    const colon = line.indexOf(':');
    const field = colon === -1 ? '' : line.slice(0, colon);
    if (FIELDS.has(field)) stanza.set(field, line.slice(colon + 1).trim());
  }
  end();
  return list.sorted();
}

import { by } from '../../api/order.ts';
import { isWildcard } from '../../oci/registries-conf.ts';
import type { RegistryEntry } from './registry-entries.ts';
import { isNested, withoutReference } from './scopes.ts';

/**
 * Writes a file of registries.d (containers-registries.d(5)): where container tools look for signatures beside images.
 * It is the place that is pulled from that counts, so the mirrors of what is signed have entries, too (MCO,
 * generateSigstoreRegistriesdConfig).
 *
 * @param scopes of signature policies. @param entries of the registries.conf that the nodes get.
 * @param without repositories whose entries the daemon writes on each node: a name in two files ends every pull.
 * @returns the file's text; undefined where no image needs a signature.
 */
export function formatSignaturePlaces(
  scopes: readonly string[],
  entries: readonly RegistryEntry[],
  without: readonly string[],
): string | undefined {
  const places = new Set(scopes.flatMap((scope) => placesOf(scope, entries)));
  for (const place of without.flatMap((repository) => placesOf(repository, entries))) places.delete(place);
  if (places.size === 0) return undefined;
  const lines = [...places]
    .sort()
    .map((place) => `  ${JSON.stringify(place)}:\n    use-sigstore-attachments: true`);
  return `docker:\n${lines.join('\n')}\n`;
}

/** @returns a scope, what it is pulled from by the entry that it is in, and the same for the entries within it. */
function placesOf(scope: string, entries: readonly RegistryEntry[]): readonly string[] {
  const repository = withoutReference(scope);
  const outer = entries
    .filter((entry) => isNested(repository, entry.scope))
    .toSorted(by(({ scope: { length } }) => -length))[0];
  const inner = entries.filter((entry) => entry.scope !== repository && isNested(entry.scope, repository));
  return [
    scope,
    ...(outer === undefined ? [] : mirrorsOf(outer, repository)),
    ...inner.flatMap((entry) => [
      ...(isWildcard(entry.scope) ? [] : [entry.scope]),
      ...mirrorsOf(entry, entry.scope),
    ]),
  ];
}

/** What follows the host replaces what follows a wildcard: its mirrors serve the repositories of any host in it. */
function mirrorsOf({ scope, mirrors }: RegistryEntry, repository: string): readonly string[] {
  const path = isWildcard(scope) ? repository.replace(/^[^/]*/, '') : repository.slice(scope.length);
  return mirrors.map(({ location }) => `${location}${path}`);
}

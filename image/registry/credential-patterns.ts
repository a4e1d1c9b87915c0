/**
 * @returns whether a key of an auth file is for several registries. Of all that globs have, kubelets know `*` alone in
 * a key.
 */
export function isHostPattern(key: string): boolean {
  return hostOf(key).includes('*');
}

/**
 * Whether a pattern is for a place, as a kubelet decides it (credentialprovider, URLsMatch): label by label, so
 * `*.example.org` is for no name two levels below. Ports and paths are compared as they are.
 *
 * @param pattern such as `*.example.org:5000/team`. @param place a registry, or a registry and the beginning of a
 *   repository.
 */
export function matchesPlace(pattern: string, place: string): boolean {
  const [host, sought] = [hostOf(pattern), hostOf(place)];
  const [labels, names] = [host.split('.'), sought.split('.')];
  return (
    pattern.slice(host.length) === place.slice(sought.length) &&
    portOf(host) === portOf(sought) &&
    labels.length === names.length &&
    labels.every((label, index) => matchesLabel(label, names[index] ?? ''))
  );
}

function hostOf(place: string): string {
  return place.split('/', 1)[0] ?? '';
}

function portOf(host: string): string {
  const colon = host.indexOf(':');
  return colon < 0 ? '' : host.slice(colon + 1);
}

/**
 * The parts between stars follow each other: the first begins the name, the last ends it, and each of the others comes
 * as early as it can.
 */
function matchesLabel(label: string, name: string): boolean {
  const [first = '', ...more] = label.split('*');
  const last = more.pop();
  if (last === undefined) return label === name;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of more) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

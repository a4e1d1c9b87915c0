/** What is used of a package URL (purl-spec, "A purl is a URL composed of seven components"). */
export interface PackageUrl {
  readonly type: string;
  readonly name: string;
  readonly version: string | undefined;
}

/** @returns the parts of a package URL; undefined for another text. */
export function parsePackageUrl(purl: string): PackageUrl | undefined {
  const [, type, rest] = /^pkg:\/*([A-Za-z0-9.+-]+)\/([^?#]+)/.exec(purl) ?? [];
  if (type === undefined || rest === undefined) return undefined;
  // A version begins at the last `@`; a namespace of npm begins with one, which is encoded or comes before a slash.
  const at = rest.lastIndexOf('@');
  const hasVersion = at > rest.lastIndexOf('/');
  const path = hasVersion ? rest.slice(0, at) : rest;
  const name = decoded(path.slice(path.lastIndexOf('/') + 1));
  return { type: type.toLowerCase(), name, version: hasVersion ? decoded(rest.slice(at + 1)) : undefined };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What registries.conf takes as a scope: a registry, a repository or namespace of it, or `*.domain`. */
const SCOPE = /^(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*$/;

/** @returns whether a text is a scope; a wildcard stands for whole registries only. */
export function isScope(text: string): boolean {
  return SCOPE.test(text) && !(isWildcard(text) && text.includes('/'));
}

export function isWildcard(scope: string): boolean {
  return scope.startsWith('*.');
}

/** @returns whether everything of one scope is in another (openshift/runtime-utils, ScopeIsNestedInsideScope). */
export function isNested(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!isWildcard(outer)) return false;
  const [host = ''] = inner.split(/[:/]/);
  return host.endsWith(outer.slice(1));
}

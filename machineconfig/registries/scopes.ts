import { isWildcard } from '../../oci/registries-conf.ts';

/** @returns whether everything of one scope is in another (openshift/runtime-utils, ScopeIsNestedInsideScope). */
export function isNested(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!isWildcard(outer)) return false;
  const [host = ''] = inner.split(/[:/]/);
  return host.endsWith(outer.slice(1));
}

/** @returns a scope of a signature policy without its tag and digest. */
export function withoutReference(scope: string): string {
  const [name = ''] = scope.split('@');
  const colon = name.lastIndexOf(':');
  return name.includes('/') && colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}

/** @returns whether every image of a scope, which may be one by tag or digest, is in another one. */
export function isScopeWithin(inner: string, outer: string): boolean {
  return inner === outer || isNested(withoutReference(inner), outer);
}

/** What a request's path names (k8s.io/apiserver RequestInfo). */
export type RequestPath =
  | {
      readonly type: 'resource';
      readonly group: string;
      readonly version: string;
      /** '' for the whole cluster, or all namespaces. */
      readonly namespace: string;
      readonly plural: string;
      /** '' for the collection. */
      readonly name: string;
      readonly subresource: string;
    }
  /** `/apis/apps/v1`, `/healthz`, `/openapi/v3`, … */
  | { readonly type: 'path'; readonly path: string };

/** @returns what a URL's path names: `/api/v1/namespaces/x/pods/y/status`. */
export function parseRequestPath(pathname: string): RequestPath {
  const parts = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const [prefix, ...rest] = parts;
  const groupVersion = prefix === 'api' ? ['', rest[0]] : [rest[0], rest[1]];
  const below = prefix === 'api' ? rest.slice(1) : rest.slice(2);
  const [group, version] = groupVersion;
  if (
    (prefix !== 'api' && prefix !== 'apis') ||
    group === undefined ||
    version === undefined ||
    below.length === 0
  ) {
    return { type: 'path', path: pathname };
  }
  return { type: 'resource', group, version, ...namedBelow(below) };
}

interface Named {
  readonly namespace: string;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
}

/** Names tell a namespace's own subresources from the resources in it. */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);

function namedBelow(parts: readonly string[]): Named {
  const [first = '', second = '', third = ''] = parts;
  if (first === 'namespaces' && third !== '' && !NAMESPACE_SUBRESOURCES.has(third)) {
    const [, namespace = '', plural = '', name = '', ...subresource] = parts;
    return { namespace, plural, name, subresource: subresource.join('/') };
  }
  // For authorization, a Namespace is in itself.
  const namespace = first === 'namespaces' ? second : '';
  return { namespace, plural: first, name: second, subresource: parts.slice(2).join('/') };
}

/** @returns the verb of a request for a resource, as RBAC names it. */
export function verbOf(method: string, name: string, watch: boolean): string | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (watch) return 'watch';
      return name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

import type { Kind, KubernetesObject } from '../api/object.ts';

/**
 * The path of a resource (Kubernetes API concepts, "Resource URIs").
 *
 * @param name absent: the collection.
 * @throws TypeError for an object of a namespaced kind without a namespace: it would address another resource.
 */
export function resourcePath<T extends KubernetesObject>(
  kind: Kind<T>,
  place: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string },
): string {
  const { namespace, name, subresource } = place;
  if (kind.namespaced && name !== undefined && namespace === undefined) {
    throw new TypeError(`${kind.kind} ${name}: a namespace is needed`);
  }
  const segments = [
    ...(kind.group === '' ? ['api', kind.version] : ['apis', kind.group, kind.version]),
    ...(kind.namespaced && namespace !== undefined ? ['namespaces', namespace] : []),
    kind.plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

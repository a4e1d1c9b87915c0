import type { Review } from '../access/reviews.ts';
import { byCodeUnit, type JsonObject } from '../json.ts';
import { apiVersionOf, type Resource } from '../resources/resource.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const SUBRESOURCE_VERBS = {
  status: ['get', 'patch', 'update'],
  eviction: ['create'],
  token: ['create'],
  log: ['get'],
  scale: ['get', 'patch', 'update'],
} as const;
const SUBRESOURCE_KINDS = {
  eviction: { group: 'policy', version: 'v1', kind: 'Eviction' },
  token: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
  scale: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
} as const;

/** What there is to discover. */
export interface Discoverable {
  readonly resources: readonly Resource[];
  readonly reviews: readonly Review[];
}

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** @returns the versions of each group, groups in order. */
function groupVersions({ resources, reviews }: Discoverable): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  const all: readonly GroupVersion[] = [
    ...resources,
    ...reviews.map(({ group }) => ({ group, version: 'v1' })),
  ];
  for (const { group, version } of all) {
    const versions = groups.get(group) ?? [];
    if (!versions.includes(version)) versions.push(version);
    groups.set(group, versions);
  }
  return new Map([...groups].sort(([a], [b]) => byCodeUnit(a, b)));
}

function groupBody(group: string, versions: readonly string[]): JsonObject {
  const entries = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: entries, preferredVersion: entries[0] ?? {} };
}

/**
 * What `/` answers, by which Cluster API's clients check that a cluster is reachable (apiserver, routes/index.go).
 *
 * @returns the paths of the API that are there, in order.
 */
export function rootPaths(discoverable: Discoverable): JsonObject {
  const groups = [...groupVersions(discoverable)].filter(([group]) => group !== '');
  const paths = groups.flatMap(([group, versions]) => [
    group,
    ...versions.map((version) => `${group}/${version}`),
  ]);
  const all = ['api', 'api/v1', 'apis', ...paths.map((each) => `apis/${each}`), 'healthz', 'livez', 'readyz'];
  return { paths: [...all, 'openapi/v3', 'version'].map((each) => `/${each}`).toSorted(byCodeUnit) };
}

/**
 * Answers the discovery paths (Kubernetes, "The Kubernetes API", "Discovery API", unaggregated): `/api`, `/apis`,
 * `/apis/GROUP`, `/api/v1`, `/apis/GROUP/VERSION`.
 *
 * @returns undefined for any other path, or a group or version that is not there.
 */
export function discover(path: string, discoverable: Discoverable): JsonObject | undefined {
  const parts = path.split('/').filter((part) => part !== '');
  const [prefix, first, second, ...more] = parts;
  if (more.length > 0) return undefined;
  if (prefix === 'api') return discoverCore(first, second, discoverable);
  if (prefix !== 'apis') return undefined;
  const groups = groupVersions(discoverable);
  if (first === undefined) {
    const bodies = [...groups]
      .filter(([group]) => group !== '')
      .map(([group, versions]) => groupBody(group, versions));
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: bodies };
  }
  const versions = groups.get(first) ?? [];
  if (second === undefined) {
    return versions.length === 0
      ? undefined
      : { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(first, versions) };
  }
  return versions.includes(second)
    ? resourceList({ group: first, version: second }, discoverable)
    : undefined;
}

function discoverCore(version: string | undefined, more: string | undefined, discoverable: Discoverable) {
  if (more !== undefined) return undefined;
  if (version === 'v1') return resourceList({ group: '', version }, discoverable);
  if (version !== undefined) return undefined;
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
}

function resourceList({ group, version }: GroupVersion, { resources, reviews }: Discoverable): JsonObject {
  const own = resources.filter((each) => each.group === group && each.version === version);
  const asked = reviews.filter((each) => each.group === group && version === 'v1');
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: [
      ...own.flatMap((resource) => [resourceBody(resource), ...subresourceBodies(resource)]),
      ...asked.map(({ plural, kind }) => ({
        name: plural,
        singularName: kind.toLowerCase(),
        namespaced: false,
        kind,
        verbs: ['create'],
      })),
    ],
  };
}

function resourceBody(resource: Resource): JsonObject {
  const { plural, singular, namespaced, kind, shortNames, categories } = resource;
  return {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: VERBS,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
}

function subresourceBodies({ plural, namespaced, kind, subresources }: Resource): readonly JsonObject[] {
  return subresources.map((name) => ({
    name: `${plural}/${name}`,
    singularName: '',
    namespaced,
    ...(name === 'status' || name === 'log' ? { kind } : SUBRESOURCE_KINDS[name]),
    verbs: SUBRESOURCE_VERBS[name],
  }));
}

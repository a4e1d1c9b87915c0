import { createHash } from 'node:crypto';
import { byCodeUnit, type Json, type JsonObject } from '../json.ts';
import { apiVersionOf, type Resource } from '../resources/resource.ts';

/**
 * Answers `/openapi/v3` and the documents it points to (Kubernetes, "OpenAPI V3"): of custom resources their whole
 * schema, which `kubectl explain` shows; for built-in kinds only that they are objects.
 *
 * @returns undefined for a path or a group version that is not there.
 */
export function openAPI(path: string, resources: readonly Resource[]): JsonObject | undefined {
  const at = path.replace(/^\/openapi\/v3\/?/, '').replace(/\/$/, '');
  const byPath = Map.groupBy(resources, pathOf);
  if (at !== '') {
    const found = byPath.get(at);
    return found === undefined ? undefined : document(found);
  }
  const entries = [...byPath]
    .sort(([a], [b]) => byCodeUnit(a, b))
    .map(([name, own]): [string, Json] => [
      name,
      { serverRelativeURL: `/openapi/v3/${name}?hash=${hash(document(own))}` },
    ]);
  return { paths: Object.fromEntries(entries) };
}

const pathOf = ({ group, version }: Resource): string =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`;

function hash(body: JsonObject): string {
  return createHash('sha256').update(JSON.stringify(body)).digest('hex').toUpperCase();
}

function document(resources: readonly Resource[]): JsonObject {
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(resources.flatMap(pathsOf)),
    components: { schemas: { [OBJECT_META]: objectMeta, ...Object.fromEntries(resources.map(schemaOf)) } },
  };
}

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const objectMeta: JsonObject = {
  type: 'object',
  description: 'ObjectMeta is metadata that all persisted resources must have.',
  'x-kubernetes-preserve-unknown-fields': true,
};

/** @returns `org.openshift.machineconfiguration.v1.MachineConfig`. */
function schemaName({ group, version, kind }: Resource): string {
  const reversed = group === '' ? ['io', 'k8s', 'api', 'core'] : group.split('.').reverse();
  return [...reversed, version, kind].join('.');
}

function schemaOf(resource: Resource): [string, JsonObject] {
  const {
    group,
    version,
    kind,
    openAPI: own = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  } = resource;
  const properties = (own['properties'] ?? {}) as JsonObject;
  return [
    schemaName(resource),
    {
      ...own,
      properties: {
        ...properties,
        apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
        kind: { type: 'string', description: 'What this object is.' },
        metadata: {
          allOf: [{ $ref: `#/components/schemas/${OBJECT_META}` }],
          default: {},
          description: 'Standard metadata.',
        },
      },
      'x-kubernetes-group-version-kind': [{ group, version, kind }],
    },
  ];
}

/** That PATCH takes fieldValidation is how kubectl learns that the server checks fields itself. */
function pathsOf(resource: Resource): readonly [string, JsonObject][] {
  const { group, version, kind, plural, namespaced } = resource;
  const base = `/${pathOf(resource)}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`;
  const body = { 'application/json': { schema: { $ref: `#/components/schemas/${schemaName(resource)}` } } };
  const operation = (action: string, patch = false): JsonObject => ({
    operationId: `${action}${apiVersionOf(resource).replaceAll(/\W/g, '')}${kind}`,
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
    parameters: ['dryRun', 'fieldManager', 'fieldValidation', ...(patch ? ['force'] : [])].map((name) => ({
      name,
      in: 'query',
      schema: { type: 'string' },
    })),
    responses: { '200': { description: 'OK', content: body } },
  });
  return [
    [base, { get: operation('list'), post: operation('post') }],
    [
      `${base}/{name}`,
      {
        get: operation('get'),
        put: operation('put'),
        patch: operation('patch', true),
        delete: operation('delete'),
      },
    ],
  ];
}

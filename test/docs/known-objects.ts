import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { JsonObject } from '../../workshop/apiserver/json.ts';
import { compileSchema } from '../../workshop/apiserver/schema/compiled-schema.ts';
import { problemsOf as problemsForKubernetes } from '../install/kubernetes-schema.ts';

/** @returns the objects of a block of YAML. @throws Error for what is no YAML, or no object of Kubernetes. */
export function objectsIn(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const object = document.toJS() as Partial<KubernetesObject> | null;
    if (typeof object?.apiVersion !== 'string' || typeof object.kind !== 'string') {
      throw new Error('expected apiVersion and kind: mark the content of another file with the word `file`');
    }
    return object as KubernetesObject;
  });
}

/** @returns everything in an object that its schema doesn't take; a kustomization has none here. */
export function problemsOfObject(object: KubernetesObject): string[] {
  const definition = crdDefinitions.find(
    ({ kind }) => object.kind === kind.kind && object.apiVersion === `${kind.group}/${kind.version}`,
  );
  if (definition === undefined) {
    if (object.kind === 'Kustomization') return [];
    return problemsForKubernetes(object) ?? [`${object.apiVersion} ${object.kind}: an unknown kind`];
  }
  const [version] = crdOf(definition).spec['versions'] as [{ schema: { openAPIV3Schema: JsonObject } }];
  const given = object as unknown as JsonObject;
  const { object: admitted, problems } = compileSchema(version.schema.openAPIV3Schema).admit(
    structuredClone(given),
  );
  return [
    ...problems.map(({ field, message }) => `${field ?? ''}: ${message ?? ''}`),
    ...dropped(given, admitted, object.kind),
  ];
}

/** @returns fields that were given and are not kept: the API server would drop them with a warning. */
function dropped(given: unknown, kept: unknown, at: string): string[] {
  if (isDeepStrictEqual(given, kept) || typeof given !== 'object' || given === null) return [];
  return Object.entries(given).flatMap(([key, value]) => {
    const found = (kept as Record<string, unknown> | undefined)?.[key];
    return found === undefined ? [`${at}.${key}: unknown field`] : dropped(value, found, `${at}.${key}`);
  });
}

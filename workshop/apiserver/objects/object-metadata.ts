import { randomBytes, randomUUID } from 'node:crypto';
import type { User } from '../access/attributes.ts';
import { isArray, isObject, type Json, type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import { apiVersionOf, type Resource } from '../resources/resource.ts';
import type { ResourceRegistry } from '../resources/resource-registry.ts';
import { invalidField, requiredField } from '../resources/strategies.ts';
import { badRequest, type Cause, conflict, invalid, StatusError } from '../status.ts';
import type { Store } from '../store/store.ts';
import {
  type Metadata,
  metadataOf,
  type OwnerReference,
  type StoredObject,
  stringMap,
  timestamp,
} from '../stored-object.ts';

/** RFC 1123; what names of most objects are. */
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_LENGTH = 253;
/** Names of RBAC objects are path segments: they may hold colons (validation.ValidateRBACName). */
const PATH_SEGMENT_GROUP = 'rbac.authorization.k8s.io';
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Letters and digits that make no words (k8s.io/apimachinery/pkg/util/rand). */
const SUFFIX_CHARACTERS = 'bcdfghjklmnpqrstvwxz2456789';

/** @returns the object with the apiVersion and kind of the resource; where it has others it is refused. */
export function typed(resource: Resource, object: JsonObject): JsonObject {
  const { apiVersion, kind } = object;
  const expected = apiVersionOf(resource);
  if (apiVersion !== undefined && apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${String(apiVersion)}) does not match the expected API version (${expected})`,
    );
  }
  if (kind !== undefined && kind !== resource.kind) {
    throw badRequest(
      `the kind in the data (${String(kind)}) does not match the expected kind (${resource.kind})`,
    );
  }
  return { ...object, apiVersion: expected, kind: resource.kind };
}

/**
 * @returns metadata of a new object: what the client may set, and what the server does. @throws StatusError 400, 422.
 */
export function newMetadata(resource: Resource, object: JsonObject, namespace: string, now: Date): Metadata {
  const given = metadataOf(object);
  if (given['resourceVersion'] !== undefined && given['resourceVersion'] !== '') {
    // A bare error of the storage (k8s.io/apiserver storage.ErrResourceVersionSetOnCreate), which no one gave a reason.
    throw new StatusError(500, '', 'resourceVersion should not be set on objects to be created');
  }
  const prefix = stringAt(given, 'generateName');
  const name =
    stringAt(given, 'name') || (prefix === undefined || prefix === '' ? '' : `${prefix}${suffix()}`);
  return {
    ...settable(resource, object, namespace),
    ...(prefix === undefined ? {} : { generateName: prefix }),
    name,
    ...(resource.namespaced ? { namespace } : {}),
    uid: randomUUID(),
    resourceVersion: '',
    ...(resource.generation ? { generation: 1 } : {}),
    creationTimestamp: timestamp(now),
  };
}

/**
 * @returns metadata of a changed object: what the client may change, the rest as it was. @throws StatusError 400, 409,
 * 422.
 */
export function changedMetadata(resource: Resource, current: StoredObject, object: JsonObject): Metadata {
  const given = metadataOf(object);
  const { name, namespace = '', uid, resourceVersion } = current.metadata;
  if (given['name'] !== undefined && given['name'] !== name) {
    throw badRequest(
      `the name of the object (${String(given['name'])}) does not match the name on the URL (${name})`,
    );
  }
  if (given['uid'] !== undefined && given['uid'] !== '' && given['uid'] !== uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${String(given['uid'])}, UID in object meta: ${uid}`,
    );
  }
  const version = given['resourceVersion'];
  if (version !== undefined && version !== '' && version !== resourceVersion) {
    throw conflict(
      resource,
      name,
      'the object has been modified; please apply your changes to the latest version and try again',
    );
  }
  const deletion = stringAt(given, 'deletionTimestamp');
  if (deletion !== undefined && deletion !== current.metadata.deletionTimestamp) {
    throw invalid(resource, name, [
      invalidField('metadata.deletionTimestamp', deletion, 'field is immutable'),
    ]);
  }
  const { labels: _l, annotations: _a, finalizers: _f, ownerReferences: _o, ...kept } = current.metadata;
  return { ...settable(resource, object, namespace), ...kept };
}

/** The part of metadata that clients write. */
function settable(
  resource: Resource,
  object: JsonObject,
  namespace: string,
): Pick<Metadata, 'labels' | 'annotations' | 'finalizers' | 'ownerReferences'> {
  const given = metadataOf(object);
  const own = stringAt(given, 'namespace');
  if (resource.namespaced && own !== undefined && own !== '' && own !== namespace) {
    throw badRequest(
      `the namespace of the provided object does not match the namespace sent on the request (${own} against ${namespace})`,
    );
  }
  const labels = stringMap(given['labels']);
  const annotations = stringMap(given['annotations']);
  const finalizers = stringsAt(given, 'finalizers');
  const ownerReferences = objectsAt(given, 'ownerReferences') as readonly OwnerReference[];
  return {
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(finalizers.length === 0 ? {} : { finalizers }),
    ...(ownerReferences.length === 0 ? {} : { ownerReferences }),
  };
}

function suffix(): string {
  return [...randomBytes(5)].map((byte) => SUFFIX_CHARACTERS[byte % SUFFIX_CHARACTERS.length]).join('');
}

/** @throws StatusError 422 for a name, label or owner reference that is none. */
export function validateMetadata(resource: Resource, object: JsonObject): readonly Cause[] {
  const metadata = metadataOf(object);
  const name = stringAt(metadata, 'name') ?? '';
  if (name === '')
    throw invalid(resource, '', [requiredField('metadata.name', 'name or generateName is required')]);
  return [
    ...nameProblems(resource, name),
    ...labelProblems(metadata['labels']),
    ...ownerProblems(metadata['ownerReferences']),
  ];
}

function nameProblems(resource: Resource, name: string): readonly Cause[] {
  if (resource.group === PATH_SEGMENT_GROUP) {
    return /^\.{1,2}$|[/%]/.test(name)
      ? [invalidField('metadata.name', name, "may not contain '/' or '%'")]
      : [];
  }
  if (name.length > NAME_LENGTH) {
    return [invalidField('metadata.name', name, `must be no more than ${NAME_LENGTH} characters`)];
  }
  return SUBDOMAIN.test(name) ? [] : [invalidField('metadata.name', name, SUBDOMAIN_TEXT)];
}

function labelProblems(labels: Json | undefined): readonly Cause[] {
  if (labels === undefined || labels === null) return [];
  if (!isObject(labels))
    return [invalidField('metadata.labels', JSON.stringify(labels), 'must be a map of strings')];
  return Object.entries(labels).flatMap(([key, value]) => [
    ...(LABEL_KEY.test(key)
      ? []
      : [
          invalidField(
            'metadata.labels',
            key,
            "name part must consist of alphanumeric characters, '-', '_' or '.'",
          ),
        ]),
    ...(typeof value === 'string' && LABEL_VALUE.test(value)
      ? []
      : [
          invalidField(
            'metadata.labels',
            String(value),
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
          ),
        ]),
  ]);
}

function ownerProblems(references: Json | undefined): readonly Cause[] {
  if (!isArray(references)) return [];
  return references.flatMap((reference) =>
    ['apiVersion', 'kind', 'name', 'uid']
      .filter((field) => stringAt(reference, field) === undefined || stringAt(reference, field) === '')
      .map((field) => requiredField(`metadata.ownerReferences.${field}`, 'must not be empty')),
  );
}

/** A write as admission sees it (admission.k8s.io AdmissionRequest). */
export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly resource: Resource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: User;
  readonly object?: JsonObject;
  readonly oldObject?: StoredObject;
  /** Receives warnings for the writer of a request that is admitted. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** What writes work on. */
export interface ObjectContext {
  readonly store: Store;
  readonly resources: ResourceRegistry;
  /** @throws StatusError for a write that a policy denies. */
  readonly admit: (request: AdmissionRequest) => Promise<void>;
  readonly now: () => Date;
}

/** Who writes, and whether it is only tried. */
export interface Writer {
  readonly user: User;
  /** Who owns the fields that are written: the request's fieldManager, or the name of its program. */
  readonly manager: string;
  /** Through which other subresource than the status. */
  readonly subresource?: 'scale';
  /** dryRun=All: everything is checked and nothing kept. */
  readonly dryRun: boolean;
  readonly warn?: (message: string) => void;
}

/** The API server's own controllers write as this. */
export const SYSTEM: Writer = {
  user: { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'], extra: {} },
  manager: 'kube-apiserver',
  dryRun: false,
};

/** How a field of a message becomes JSON. */
export type FieldType =
  | 'string'
  | 'integer'
  | 'boolean'
  /** map<string, string> */
  | 'strings'
  /** map<string, bytes>, base64 in JSON */
  | 'blobs'
  /** What the server sets or does not keep: read over. */
  | 'ignored'
  | Message;

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly repeated?: boolean;
}

/** Fields by their number. */
export interface Message {
  readonly [number: number]: Field;
}

const field = (name: string, type: FieldType): Field => ({ name, type });
const list = (name: string, type: FieldType): Field => ({ name, type, repeated: true });

const ownerReference: Message = {
  1: field('kind', 'string'),
  3: field('name', 'string'),
  4: field('uid', 'string'),
  5: field('apiVersion', 'string'),
  6: field('controller', 'boolean'),
  7: field('blockOwnerDeletion', 'boolean'),
};

const metadata: Field = field('metadata', {
  1: field('name', 'string'),
  2: field('generateName', 'string'),
  3: field('namespace', 'string'),
  4: field('selfLink', 'ignored'),
  5: field('uid', 'string'),
  6: field('resourceVersion', 'string'),
  7: field('generation', 'ignored'),
  8: field('creationTimestamp', 'ignored'),
  9: field('deletionTimestamp', 'ignored'),
  10: field('deletionGracePeriodSeconds', 'ignored'),
  11: field('labels', 'strings'),
  12: field('annotations', 'strings'),
  13: list('ownerReferences', ownerReference),
  14: list('finalizers', 'string'),
  17: field('managedFields', 'ignored'),
});

const deleteOptions: Message = {
  1: field('gracePeriodSeconds', 'integer'),
  2: field('preconditions', { 1: field('uid', 'string'), 2: field('resourceVersion', 'string') }),
  3: field('orphanDependents', 'boolean'),
  4: field('propagationPolicy', 'string'),
  5: list('dryRun', 'string'),
};

const resourceAttributes: Message = {
  1: field('namespace', 'string'),
  2: field('verb', 'string'),
  3: field('group', 'string'),
  4: field('version', 'string'),
  5: field('resource', 'string'),
  6: field('subresource', 'string'),
  7: field('name', 'string'),
};

const localReference: Message = { 1: field('name', 'string') };

/**
 * The kinds that kubectl sends as protobuf and that are of use in a sandbox, by apiVersion and kind (field numbers: the
 * generated.proto of k8s.io/api and k8s.io/apimachinery).
 */
export const MESSAGES: Readonly<Record<string, Message>> = {
  'v1 ConfigMap': {
    1: metadata,
    2: field('data', 'strings'),
    3: field('binaryData', 'blobs'),
    4: field('immutable', 'boolean'),
  },
  'v1 Secret': {
    1: metadata,
    2: field('data', 'blobs'),
    3: field('type', 'string'),
    4: field('stringData', 'strings'),
    5: field('immutable', 'boolean'),
  },
  'v1 ServiceAccount': {
    1: metadata,
    2: list('secrets', { 3: field('name', 'string') }),
    3: list('imagePullSecrets', localReference),
    4: field('automountServiceAccountToken', 'boolean'),
  },
  'v1 Namespace': { 1: metadata, 2: field('spec', 'ignored'), 3: field('status', 'ignored') },
  'v1 DeleteOptions': deleteOptions,
  'policy/v1 Eviction': { 1: metadata, 2: field('deleteOptions', deleteOptions) },
  'authentication.k8s.io/v1 SelfSubjectReview': { 1: metadata, 2: field('status', 'ignored') },
  'authentication.k8s.io/v1 TokenRequest': {
    1: metadata,
    2: field('spec', {
      1: list('audiences', 'string'),
      3: field('boundObjectRef', {
        1: field('kind', 'string'),
        2: field('apiVersion', 'string'),
        3: field('name', 'string'),
        4: field('uid', 'string'),
      }),
      4: field('expirationSeconds', 'integer'),
    }),
    3: field('status', 'ignored'),
  },
  'authorization.k8s.io/v1 SelfSubjectAccessReview': {
    1: metadata,
    2: field('spec', {
      1: field('resourceAttributes', resourceAttributes),
      2: field('nonResourceAttributes', { 1: field('path', 'string'), 2: field('verb', 'string') }),
    }),
    3: field('status', 'ignored'),
  },
  'authorization.k8s.io/v1 SelfSubjectRulesReview': {
    1: metadata,
    2: field('spec', { 1: field('namespace', 'string') }),
    3: field('status', 'ignored'),
  },
};

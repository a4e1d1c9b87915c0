/** How a field of a message becomes JSON. */
export type FieldType =
  /** These are sent only if they are set. */
  | 'string'
  | 'integer'
  | 'boolean'
  /** These are always sent, so that an empty one is none (`omitempty` of the Go type). */
  | 'text'
  | 'count'
  | 'flag'
  /** k8s.io/apimachinery/pkg/util/intstr IntOrString */
  | 'intOrString'
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
  1: field('name', 'text'),
  2: field('generateName', 'text'),
  3: field('namespace', 'text'),
  4: field('selfLink', 'ignored'),
  5: field('uid', 'text'),
  6: field('resourceVersion', 'text'),
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

const labelSelector: Message = {
  1: field('matchLabels', 'strings'),
  2: list('matchExpressions', {
    1: field('key', 'text'),
    2: field('operator', 'text'),
    3: list('values', 'string'),
  }),
};

/** What kubectl itself makes of `--image`, `--port` and a command. */
const container: Message = {
  1: field('name', 'text'),
  2: field('image', 'text'),
  3: list('command', 'string'),
  4: list('args', 'string'),
  5: field('workingDir', 'text'),
  6: list('ports', {
    1: field('name', 'text'),
    2: field('hostPort', 'count'),
    3: field('containerPort', 'count'),
    4: field('protocol', 'text'),
    5: field('hostIP', 'text'),
  }),
  7: list('env', { 1: field('name', 'text'), 2: field('value', 'text') }),
  8: field('resources', {}),
  13: field('terminationMessagePath', 'text'),
  14: field('imagePullPolicy', 'text'),
  16: field('stdin', 'flag'),
  17: field('stdinOnce', 'flag'),
  18: field('tty', 'flag'),
  20: field('terminationMessagePolicy', 'text'),
};

const podTemplate: Message = {
  1: metadata,
  2: field('spec', {
    2: list('containers', container),
    3: field('restartPolicy', 'text'),
    4: field('terminationGracePeriodSeconds', 'integer'),
    6: field('dnsPolicy', 'text'),
    7: field('nodeSelector', 'strings'),
    8: field('serviceAccountName', 'text'),
    9: field('serviceAccount', 'text'),
    10: field('nodeName', 'text'),
    11: field('hostNetwork', 'flag'),
    12: field('hostPID', 'flag'),
    13: field('hostIPC', 'flag'),
    16: field('hostname', 'text'),
    17: field('subdomain', 'text'),
    19: field('schedulerName', 'text'),
    24: field('priorityClassName', 'text'),
  }),
};

const rules = list('rules', {
  1: list('verbs', 'string'),
  2: list('apiGroups', 'string'),
  3: list('resources', 'string'),
  4: list('resourceNames', 'string'),
  5: list('nonResourceURLs', 'string'),
});

const roleBinding: Message = {
  1: metadata,
  2: list('subjects', {
    1: field('kind', 'text'),
    2: field('apiGroup', 'text'),
    3: field('name', 'text'),
    4: field('namespace', 'text'),
  }),
  3: field('roleRef', { 1: field('apiGroup', 'text'), 2: field('kind', 'text'), 3: field('name', 'text') }),
};

const servicePort: Message = {
  1: field('name', 'text'),
  2: field('protocol', 'text'),
  3: field('port', 'count'),
  4: field('targetPort', 'intOrString'),
  5: field('nodePort', 'count'),
};

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
  'v1 Service': {
    1: metadata,
    2: field('spec', {
      1: list('ports', servicePort),
      2: field('selector', 'strings'),
      3: field('clusterIP', 'text'),
      4: field('type', 'text'),
      7: field('sessionAffinity', 'text'),
      8: field('loadBalancerIP', 'text'),
      10: field('externalName', 'text'),
      11: field('externalTrafficPolicy', 'text'),
      12: field('healthCheckNodePort', 'count'),
      13: field('publishNotReadyAddresses', 'flag'),
    }),
    3: field('status', 'ignored'),
  },
  'apps/v1 Deployment': {
    1: metadata,
    2: field('spec', {
      1: field('replicas', 'integer'),
      2: field('selector', labelSelector),
      3: field('template', podTemplate),
      4: field('strategy', { 1: field('type', 'text') }),
      5: field('minReadySeconds', 'count'),
      7: field('paused', 'flag'),
    }),
    3: field('status', 'ignored'),
  },
  'rbac.authorization.k8s.io/v1 Role': { 1: metadata, 2: rules },
  'rbac.authorization.k8s.io/v1 RoleBinding': roleBinding,
  'rbac.authorization.k8s.io/v1 ClusterRole': {
    1: metadata,
    2: rules,
    3: field('aggregationRule', { 1: list('clusterRoleSelectors', labelSelector) }),
  },
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': roleBinding,
  'scheduling.k8s.io/v1 PriorityClass': {
    1: metadata,
    2: field('value', 'integer'),
    3: field('globalDefault', 'flag'),
    4: field('description', 'text'),
    5: field('preemptionPolicy', 'string'),
  },
  'policy/v1 PodDisruptionBudget': {
    1: metadata,
    2: field('spec', {
      1: field('minAvailable', 'intOrString'),
      2: field('selector', labelSelector),
      3: field('maxUnavailable', 'intOrString'),
      4: field('unhealthyPodEvictionPolicy', 'string'),
    }),
    3: field('status', 'ignored'),
  },
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

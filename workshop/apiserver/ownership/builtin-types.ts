import type { Json } from '../json.ts';
import { DEDUCED, type MapType, type MergeType, UNTYPED } from './merge-type.ts';

/*
 * How objects of the built-in kinds are merged, as Kubernetes' OpenAPI document says it (x-kubernetes-list-type,
 * x-kubernetes-list-map-keys, x-kubernetes-map-type). Only what differs is here: a field that is not named may hold
 * anything, an object is merged by its fields, and a list is atomic.
 */

interface Kind {
  readonly fields?: Readonly<Record<string, MergeType>>;
  readonly defaults?: Readonly<Record<string, Json>>;
  /** Structs of the Go type that are no pointers: there even if a client leaves them out. */
  readonly always?: readonly string[];
}

function struct({ fields = {}, defaults = {}, always = [] }: Kind): MergeType {
  const map: MapType = {
    atomic: false,
    fields: new Map(Object.entries(fields)),
    get others() {
      return ANY;
    },
    open: true,
    defaults: new Map(Object.entries(defaults)),
    always: new Set(always),
  };
  return { scalar: 'untyped', list: { atomic: true, keys: [], items: UNTYPED }, map };
}

const ANY = struct({});

const keyed = (keys: readonly string[], items: MergeType = ANY): MergeType => ({
  list: { atomic: false, keys, items },
});
const SET: MergeType = { list: { atomic: false, keys: [], items: { scalar: 'untyped' } } };
const fields = (of: Readonly<Record<string, MergeType>>): MergeType => struct({ fields: of });
const allAtomic = (...names: readonly string[]): Readonly<Record<string, MergeType>> =>
  Object.fromEntries(names.map((name) => [name, UNTYPED]));

/** meta.v1.ObjectMeta, of every object. */
export const OBJECT_META: MergeType = fields({
  labels: DEDUCED,
  annotations: DEDUCED,
  finalizers: SET,
  ownerReferences: keyed(['uid'], UNTYPED),
  managedFields: UNTYPED,
});

const PORT_DEFAULTS = { protocol: 'TCP' };
const CONDITIONS = fields({ conditions: keyed(['type']) });
const RESOURCES = fields({ claims: keyed(['name']) });

const CONTAINER = struct({
  fields: {
    env: keyed(
      ['name'],
      fields({
        valueFrom: fields(
          allAtomic('configMapKeyRef', 'fieldRef', 'fileKeyRef', 'resourceFieldRef', 'secretKeyRef'),
        ),
      }),
    ),
    ports: keyed(['containerPort', 'protocol'], struct({ defaults: PORT_DEFAULTS })),
    resources: RESOURCES,
    volumeDevices: keyed(['devicePath']),
    volumeMounts: keyed(['mountPath']),
  },
  always: ['resources'],
});

const SECRET_REF = fields(allAtomic('secretRef'));

const VOLUME = fields({
  cephfs: SECRET_REF,
  cinder: SECRET_REF,
  csi: fields(allAtomic('nodePublishSecretRef')),
  ephemeral: fields({
    volumeClaimTemplate: fields({
      metadata: OBJECT_META,
      spec: fields(allAtomic('dataSource', 'selector')),
    }),
  }),
  flexVolume: SECRET_REF,
  iscsi: SECRET_REF,
  rbd: SECRET_REF,
  scaleIO: SECRET_REF,
  storageos: SECRET_REF,
});

const POD_SPEC = fields({
  affinity: fields({ nodeAffinity: fields(allAtomic('requiredDuringSchedulingIgnoredDuringExecution')) }),
  containers: keyed(['name'], CONTAINER),
  ephemeralContainers: keyed(['name'], CONTAINER),
  hostAliases: keyed(['ip']),
  imagePullSecrets: keyed(['name'], UNTYPED),
  initContainers: keyed(['name'], CONTAINER),
  nodeSelector: UNTYPED,
  resourceClaims: keyed(['name']),
  resources: RESOURCES,
  schedulingGates: keyed(['name']),
  topologySpreadConstraints: keyed(['topologyKey', 'whenUnsatisfiable'], fields(allAtomic('labelSelector'))),
  volumes: keyed(['name'], VOLUME),
});

const POD_STATUS = fields({
  conditions: keyed(['type']),
  podIPs: keyed(['ip']),
  resourceClaimStatuses: keyed(['name']),
  resources: RESOURCES,
});

/** A Deployment, DaemonSet or ReplicaSet. */
function workload(...structs: readonly string[]): MergeType {
  const template = struct({
    fields: { metadata: OBJECT_META, spec: POD_SPEC },
    always: ['metadata', 'spec'],
  });
  const spec = struct({ fields: { selector: UNTYPED, template }, always: ['template', ...structs] });
  return object({ spec, status: CONDITIONS });
}

function object(of: Readonly<Record<string, MergeType>> = {}): MergeType {
  return struct({ fields: { ...of, metadata: OBJECT_META }, always: ['metadata', 'spec', 'status'] });
}

const BINDING = object(allAtomic('roleRef'));

const TYPES: Readonly<Record<string, MergeType>> = {
  Namespace: object({ status: CONDITIONS }),
  ServiceAccount: object({ secrets: keyed(['name'], UNTYPED) }),
  Node: object({
    spec: fields({ podCIDRs: SET }),
    status: struct({
      fields: { addresses: keyed(['type']), conditions: keyed(['type']) },
      always: ['daemonEndpoints', 'nodeInfo'],
    }),
  }),
  Pod: object({ spec: POD_SPEC, status: POD_STATUS }),
  Service: object({
    spec: fields({
      ports: keyed(['port', 'protocol'], struct({ defaults: PORT_DEFAULTS })),
      selector: UNTYPED,
    }),
    status: struct({ fields: { conditions: keyed(['type']) }, always: ['loadBalancer'] }),
  }),
  Event: struct({
    fields: { ...allAtomic('involvedObject', 'related'), metadata: OBJECT_META },
    always: ['metadata', 'source'],
  }),
  Deployment: workload('strategy'),
  DaemonSet: workload('updateStrategy'),
  ReplicaSet: workload(),
  PodDisruptionBudget: object({ spec: fields(allAtomic('selector')), status: CONDITIONS }),
  NetworkPolicy: object({ spec: fields(allAtomic('podSelector')) }),
  RoleBinding: BINDING,
  ClusterRoleBinding: BINDING,
  ValidatingAdmissionPolicy: object({
    spec: fields({
      ...allAtomic('matchConstraints', 'paramKind'),
      matchConditions: keyed(['name']),
      variables: keyed(['name'], UNTYPED),
    }),
    status: CONDITIONS,
  }),
  ValidatingAdmissionPolicyBinding: object({
    spec: fields({ ...allAtomic('matchResources', 'paramRef'), validationActions: SET }),
  }),
  CustomResourceDefinition: object({ status: CONDITIONS }),
};

const OTHER = object();

/** @returns how objects of a built-in kind are merged. */
export function mergeTypeOfBuiltin(kind: string): MergeType {
  return TYPES[kind] ?? OTHER;
}

import { at, type Json, objectsAt, stringAt } from '../json.ts';
import { mergeTypeOfBuiltin } from '../ownership/builtin-types.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';
import { ageColumn, type Column, fraction, pathColumn, selectorText } from '../table/table.ts';
import type { Resource, Strategy, Subresource } from './resource.ts';
import {
  admissionPolicyStrategy,
  budgetStrategy,
  configMapStrategy,
  leaseStrategy,
  namespaceStrategy,
  podStrategy,
  roleBindingStrategy,
  secretStrategy,
  withDefaults,
  workloadStrategy,
} from './strategies.ts';

interface Options {
  readonly plural?: string;
  readonly cluster?: boolean;
  readonly short?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly Subresource[];
  readonly generation?: boolean;
  readonly columns?: readonly Column[];
  readonly selectable?: readonly string[];
  readonly strategy?: Strategy;
  /** Whether a column shows the age; default: true. */
  readonly age?: boolean;
}

function builtin(apiVersion: string, kind: string, options: Options = {}): Resource {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const singular = kind.toLowerCase();
  return {
    group: group ?? '',
    version: version ?? '',
    kind,
    singular,
    plural: options.plural ?? `${singular}s`,
    listKind: `${kind}List`,
    namespaced: options.cluster !== true,
    shortNames: options.short ?? [],
    categories: options.categories ?? [],
    subresources: options.subresources ?? [],
    generation: options.generation ?? false,
    mergeType: mergeTypeOfBuiltin(kind),
    strategicMerge: true,
    columns: [...(options.columns ?? []), ...(options.age === false ? [] : [ageColumn])],
    selectable: options.selectable ?? [],
    strategy: options.strategy ?? {},
  };
}

const column = (
  name: string,
  cell: (object: StoredObject) => Json,
  type: Column['type'] = 'string',
): Column => ({ name, type, description: '', priority: 0, cell: (object) => cell(object) });

const count = (name: string, path: string): Column => pathColumn(name, path, { type: 'integer' });

const keys = (value: Json | undefined): number =>
  typeof value === 'object' && value !== null ? Object.keys(value).length : 0;

function podStatus(pod: StoredObject): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  const [waiting] = objectsAt(pod, 'status', 'containerStatuses').flatMap(
    (status) => stringAt(status, 'state', 'waiting', 'reason') ?? [],
  );
  return waiting ?? stringAt(pod, 'status', 'reason') ?? stringAt(pod, 'status', 'phase') ?? 'Unknown';
}

function podReady(pod: StoredObject): string {
  const statuses = objectsAt(pod, 'status', 'containerStatuses');
  return `${statuses.filter(({ ready }) => ready === true).length}/${objectsAt(pod, 'spec', 'containers').length}`;
}

function nodeStatus(node: StoredObject): string {
  const ready = objectsAt(node, 'status', 'conditions').find(({ type }) => type === 'Ready');
  const state = ready?.['status'] === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec', 'unschedulable') === true ? `${state},SchedulingDisabled` : state;
}

const ROLE = 'node-role.kubernetes.io/';

function nodeRoles(node: StoredObject): string {
  const roles = Object.keys(labelsOf(node))
    .filter((label) => label.startsWith(ROLE))
    .map((label) => label.slice(ROLE.length));
  return roles.length === 0 ? '<none>' : roles.sort().join(',');
}

const restarts = (pod: StoredObject): number =>
  objectsAt(pod, 'status', 'containerStatuses').reduce(
    (sum, { restartCount }) => sum + Number(restartCount ?? 0),
    0,
  );

const core: readonly Resource[] = [
  builtin('v1', 'Namespace', {
    cluster: true,
    short: ['ns'],
    subresources: ['status'],
    strategy: namespaceStrategy,
    columns: [pathColumn('Status', '.status.phase')],
    selectable: ['status.phase'],
  }),
  builtin('v1', 'ConfigMap', {
    short: ['cm'],
    strategy: configMapStrategy,
    columns: [column('Data', (map) => keys(map['data']) + keys(map['binaryData']), 'integer')],
  }),
  builtin('v1', 'Secret', {
    strategy: secretStrategy,
    columns: [pathColumn('Type', '.type'), column('Data', (secret) => keys(secret['data']), 'integer')],
    selectable: ['type'],
  }),
  // Stored and not enforced: what they limit is an admin's choice.
  builtin('v1', 'LimitRange', { short: ['limits'] }),
  builtin('v1', 'ResourceQuota', { short: ['quota'], subresources: ['status'] }),
  builtin('v1', 'ServiceAccount', {
    short: ['sa'],
    subresources: ['token'],
    columns: [column('Secrets', (account) => objectsAt(account, 'secrets').length, 'integer')],
  }),
  builtin('v1', 'Node', {
    cluster: true,
    short: ['no'],
    subresources: ['status'],
    columns: [
      column('Status', nodeStatus),
      column('Roles', nodeRoles),
      pathColumn('Version', '.status.nodeInfo.kubeletVersion'),
      pathColumn('OS-Image', '.status.nodeInfo.osImage', { priority: 1 }),
    ],
    selectable: ['spec.unschedulable'],
  }),
  builtin('v1', 'Pod', {
    short: ['po'],
    categories: ['all'],
    subresources: ['status', 'eviction', 'log'],
    strategy: podStrategy,
    columns: [
      column('Ready', podReady),
      column('Status', podStatus),
      column('Restarts', restarts, 'integer'),
      pathColumn('Node', '.spec.nodeName', { priority: 1 }),
    ],
    selectable: ['spec.nodeName', 'status.phase', 'spec.restartPolicy', 'spec.serviceAccountName'],
  }),
  builtin('v1', 'Service', { short: ['svc'], categories: ['all'], subresources: ['status'] }),
  builtin('v1', 'Event', {
    short: ['ev'],
    columns: [
      pathColumn('Last Seen', '.lastTimestamp', { type: 'date' }),
      pathColumn('Type', '.type'),
      pathColumn('Reason', '.reason'),
      column(
        'Object',
        (event) =>
          `${(stringAt(event, 'involvedObject', 'kind') ?? '').toLowerCase()}/${stringAt(event, 'involvedObject', 'name') ?? ''}`,
      ),
      pathColumn('Message', '.message'),
    ],
    selectable: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'involvedObject.apiVersion',
      'involvedObject.resourceVersion',
      'involvedObject.fieldPath',
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
  }),
];

const workloads: readonly Resource[] = [
  builtin('apps/v1', 'Deployment', {
    short: ['deploy'],
    categories: ['all'],
    subresources: ['status', 'scale'],
    generation: true,
    strategy: workloadStrategy({ 'spec.replicas': 1, 'spec.strategy.type': 'RollingUpdate' }),
    columns: [
      column('Ready', (set) => fraction(at(set, 'status', 'readyReplicas'), at(set, 'spec', 'replicas'))),
      count('Up-to-date', '.status.updatedReplicas'),
      count('Available', '.status.availableReplicas'),
    ],
  }),
  builtin('apps/v1', 'DaemonSet', {
    short: ['ds'],
    categories: ['all'],
    subresources: ['status'],
    generation: true,
    strategy: workloadStrategy({ 'spec.updateStrategy.type': 'RollingUpdate' }),
    columns: [
      count('Desired', '.status.desiredNumberScheduled'),
      count('Current', '.status.currentNumberScheduled'),
      count('Ready', '.status.numberReady'),
      column('Node Selector', (set) => selectorText(at(set, 'spec', 'template', 'spec', 'nodeSelector'))),
    ],
  }),
  builtin('apps/v1', 'ReplicaSet', {
    short: ['rs'],
    categories: ['all'],
    subresources: ['status', 'scale'],
    generation: true,
    strategy: workloadStrategy({ 'spec.replicas': 1 }),
    columns: [count('Desired', '.spec.replicas'), count('Ready', '.status.readyReplicas')],
  }),
  builtin('policy/v1', 'PodDisruptionBudget', {
    short: ['pdb'],
    subresources: ['status'],
    generation: true,
    strategy: budgetStrategy,
    columns: [
      pathColumn('Min Available', '.spec.minAvailable'),
      pathColumn('Max Unavailable', '.spec.maxUnavailable'),
      count('Allowed Disruptions', '.status.disruptionsAllowed'),
    ],
  }),
  builtin('networking.k8s.io/v1', 'NetworkPolicy', { plural: 'networkpolicies', short: ['netpol'] }),
  builtin('coordination.k8s.io/v1', 'Lease', {
    strategy: leaseStrategy,
    columns: [pathColumn('Holder', '.spec.holderIdentity')],
  }),
  builtin('scheduling.k8s.io/v1', 'PriorityClass', {
    cluster: true,
    plural: 'priorityclasses',
    short: ['pc'],
    columns: [count('Value', '.value')],
  }),
];

/** Which no pod here has: a client that drains a node waits until none is attached to it (Cluster API). */
const volumes: readonly Resource[] = [
  builtin('v1', 'PersistentVolume', { cluster: true, short: ['pv'], subresources: ['status'] }),
  builtin('v1', 'PersistentVolumeClaim', { short: ['pvc'], subresources: ['status'] }),
  builtin('storage.k8s.io/v1', 'VolumeAttachment', { cluster: true, subresources: ['status'] }),
];

const access: readonly Resource[] = [
  builtin('rbac.authorization.k8s.io/v1', 'Role'),
  builtin('rbac.authorization.k8s.io/v1', 'RoleBinding', {
    strategy: roleBindingStrategy,
    columns: [
      column(
        'Role',
        (binding) => `${stringAt(binding, 'roleRef', 'kind')}/${stringAt(binding, 'roleRef', 'name')}`,
      ),
    ],
  }),
  builtin('rbac.authorization.k8s.io/v1', 'ClusterRole', { cluster: true }),
  builtin('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', {
    cluster: true,
    strategy: roleBindingStrategy,
    columns: [
      column(
        'Role',
        (binding) => `${stringAt(binding, 'roleRef', 'kind')}/${stringAt(binding, 'roleRef', 'name')}`,
      ),
    ],
  }),
  builtin('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', {
    cluster: true,
    plural: 'validatingadmissionpolicies',
    subresources: ['status'],
    generation: true,
    strategy: admissionPolicyStrategy,
    columns: [column('Validations', (policy) => objectsAt(policy, 'spec', 'validations').length, 'integer')],
  }),
  builtin('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding', {
    cluster: true,
    generation: true,
    columns: [pathColumn('PolicyName', '.spec.policyName')],
  }),
];

export const CUSTOM_RESOURCE_DEFINITIONS: Resource = builtin(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  {
    cluster: true,
    short: ['crd', 'crds'],
    subresources: ['status'],
    generation: true,
    columns: [pathColumn('Created At', '.metadata.creationTimestamp')],
    age: false,
    strategy: withDefaults({ 'spec.conversion.strategy': 'None' }),
  },
);

/** The built-in kinds that a cluster of this project uses; a real API server has more. */
export const BUILTIN_RESOURCES: readonly Resource[] = [
  ...core,
  ...workloads,
  ...volumes,
  ...access,
  CUSTOM_RESOURCE_DEFINITIONS,
];

/** @returns the built-in resource of this name. @throws Error where there is none: a mistake of the code. */
export function builtinResource(group: string, plural: string): Resource {
  const found = BUILTIN_RESOURCES.find((each) => each.group === group && each.plural === plural);
  if (found === undefined)
    throw new Error(`${plural} of group ${JSON.stringify(group)} is no built-in resource`);
  return found;
}

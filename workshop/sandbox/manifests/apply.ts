import type { Logger } from 'pino';
import { ClusterImagePolicies, ImagePolicies } from '../../../api/image-policies.ts';
import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../../api/image-sources.ts';
import {
  ConfigMaps,
  type CustomResourceDefinition,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  Namespaces,
  Nodes,
  PodDisruptionBudgets,
  Secrets,
  ServiceAccounts,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '../../../api/kubernetes.ts';
import { MachineConfigs } from '../../../api/machine-config.ts';
import { MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../../api/machine-configuration.ts';
import { MachineOSConfigs } from '../../../api/machine-os-config.ts';
import { apiVersionOf, type Kind, type KubernetesObject, type NewObject } from '../../../api/object.ts';
import { present } from '../../../api/present.ts';
import { type ApiClient, isAlreadyExists, isConflict } from '../../../cluster/api-client.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import { createWatches, type Look, waitUntil } from '../wait-until.ts';

const ESTABLISHED_MS = 30_000;
/** Others write the same objects' status; more conflicts in a row mean that somebody fights over the object. */
const ATTEMPTS = 6;

export interface ApplyOptions {
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Creates objects or brings them to what is given: custom resource definitions first, and once they are served all
 * others in their order.
 *
 * @throws ApiError with the server's reason; WaitTimeout when a definition is not established in time; Error for a kind
 *   that isn't known here.
 */
export async function applyObjects(
  client: ApiClient,
  objects: readonly KubernetesObject[],
  options: ApplyOptions,
): Promise<void> {
  const definitions = objects.filter(({ kind }) => kind === CustomResourceDefinitions.kind);
  for (const definition of definitions) await applyObject(client, definition, options.signal);
  if (definitions.length > 0) await established(client, definitions, options);
  for (const object of objects) {
    if (object.kind !== CustomResourceDefinitions.kind) await applyObject(client, object, options.signal);
  }
}

/**
 * Creates an object, or replaces one of its name. What others wrote into metadata stays.
 *
 * @throws ApiError with the server's reason.
 */
async function applyObject(client: ApiClient, object: KubernetesObject, signal: AbortSignal): Promise<void> {
  const kind = kindOf(object);
  const { name, namespace } = object.metadata;
  const where = { signal, ...present({ namespace }) };
  for (let attempt = 1; ; attempt += 1) {
    try {
      const seen = await client.find(kind, name, where);
      if (seen === undefined) await client.create(kind, object as NewObject<KubernetesObject>, where);
      else await client.replace(kind, onto(seen, object), where);
      return;
    } catch (error) {
      if (!(isConflict(error) || isAlreadyExists(error)) || attempt === ATTEMPTS) throw error;
    }
  }
}

function onto(stored: KubernetesObject, desired: KubernetesObject): KubernetesObject {
  const metadata = {
    ...stored.metadata,
    labels: { ...stored.metadata.labels, ...desired.metadata.labels },
    annotations: { ...stored.metadata.annotations, ...desired.metadata.annotations },
  };
  return { ...desired, metadata };
}

async function established(
  client: ApiClient,
  definitions: readonly KubernetesObject[],
  { log, signal }: ApplyOptions,
): Promise<void> {
  const watches = createWatches(client, log, signal);
  const served = watches.open(CustomResourceDefinitions);
  try {
    await waitUntil({
      what: 'every custom resource definition is established',
      changes: watches.changes,
      look: (): Look<true> => {
        const missing = definitions.filter(({ metadata }) => !isEstablished(served.get(metadata.name)));
        if (missing.length === 0) return { met: true };
        return { seen: `not yet: ${missing.map(({ metadata }) => metadata.name).join(', ')}` };
      },
      deadlineMs: ESTABLISHED_MS,
      signal,
    });
  } finally {
    await watches.close();
  }
}

function isEstablished(definition: CustomResourceDefinition | undefined): boolean {
  return conditionIsTrue(definition?.status?.conditions, 'Established');
}

const rbac = (kind: string, plural: string, namespaced: boolean): Kind<KubernetesObject> => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced,
});

const networkPolicies: Kind<KubernetesObject> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

const core = (kind: string, plural: string): Kind<KubernetesObject> => ({
  group: '',
  version: 'v1',
  kind,
  plural,
  namespaced: true,
});

/** The kinds that manifests and examples have; Shale's processes don't use all of them. */
const KINDS: readonly Kind<KubernetesObject>[] = [
  CustomResourceDefinitions,
  Namespaces,
  ServiceAccounts,
  ConfigMaps,
  Secrets,
  Nodes,
  Deployments,
  DaemonSets,
  PodDisruptionBudgets,
  networkPolicies,
  core('Service', 'services'),
  core('LimitRange', 'limitranges'),
  core('ResourceQuota', 'resourcequotas'),
  rbac('ClusterRole', 'clusterroles', false),
  rbac('ClusterRoleBinding', 'clusterrolebindings', false),
  rbac('Role', 'roles', true),
  rbac('RoleBinding', 'rolebindings', true),
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
  MachineConfigs,
  MachineConfigPools,
  MachineConfigurations,
  MachineOSConfigs,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
  ImageContentSourcePolicies,
  ImageConfigs,
  ClusterImagePolicies,
  ImagePolicies,
];

/** @returns how the API server knows the object's kind. @throws Error that names a kind that is not known here. */
function kindOf(object: KubernetesObject): Kind<KubernetesObject> {
  const known = KINDS.find((kind) => kind.kind === object.kind && apiVersionOf(kind) === object.apiVersion);
  if (known === undefined) {
    throw new Error(
      `${object.kind} ${object.metadata.name}: the sandbox can't apply ${object.apiVersion} ${object.kind}`,
    );
  }
  return known;
}

import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import { type Kind, type KubernetesObject, namespacedKind } from '../../api/object.ts';
import { CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP, type OpaqueObject } from './capi-kinds.ts';

/** The lab's own provider: kinds by Cluster API's contract v1beta2, whose machines are nodes of a sandbox. */

const VERSION = 'v1alpha1';

/** By this a provider says which of its versions speaks which contract (Cluster API, "CRD relationships"). */
const CONTRACT_LABELS = { 'cluster.x-k8s.io/v1beta2': VERSION };

export interface LabMachine extends KubernetesObject {
  readonly spec?: { readonly image?: string; readonly providerID?: string };
  readonly status?: { readonly initialization?: { readonly provisioned?: boolean } };
}

export const LabClusters: Kind<OpaqueObject> = namespacedKind(
  `${INFRASTRUCTURE_GROUP}/${VERSION}`,
  'LabCluster',
);
export const LabMachines: Kind<LabMachine> = namespacedKind(
  `${INFRASTRUCTURE_GROUP}/${VERSION}`,
  'LabMachine',
);
export const LabMachineTemplates: Kind<OpaqueObject> = namespacedKind(
  `${INFRASTRUCTURE_GROUP}/${VERSION}`,
  'LabMachineTemplate',
);
export const LabControlPlanes: Kind<OpaqueObject> = namespacedKind(
  `${CONTROL_PLANE_GROUP}/${VERSION}`,
  'LabControlPlane',
);

/** @returns their definitions. The fields that only Cluster API reads are kept as they are written. */
export function labDefinitions(): readonly CustomResourceDefinition[] {
  return [LabClusters, LabMachines, LabMachineTemplates, LabControlPlanes].map(definitionOf);
}

function definitionOf({ group, kind, plural }: Kind<KubernetesObject>): CustomResourceDefinition {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: CONTRACT_LABELS },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Namespaced',
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        },
      ],
    },
  } as CustomResourceDefinition;
}

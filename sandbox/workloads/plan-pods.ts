import type { DaemonSet, Deployment, Node, Pod, PodTemplate } from '../../api/kubernetes.ts';
import { apiVersionOf, type Kind, type KubernetesObject, type NewObject } from '../../api/object.ts';

/**
 * What the kube-controller-manager and the scheduler would do with Deployments and DaemonSets, as far as a sandbox needs
 * it: which pods to create, where, and which to delete.
 */
export interface WorkloadObservation {
  readonly deployments: readonly Deployment[];
  readonly daemonSets: readonly DaemonSet[];
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
}

export interface PodPlan {
  readonly create: readonly NewObject<Pod>[];
  readonly delete: readonly Pod[];
}

type Owner = Deployment | DaemonSet;

/**
 * @returns the pods to create, each with a node, and the pods to delete. A Deployment's pod without a node to go to is
 *   not created: it comes when there is one.
 */
export function planPods(seen: WorkloadObservation): PodPlan {
  const create: NewObject<Pod>[] = [];
  const surplus: Pod[] = [];
  const load = new Map<string, number>();
  for (const pod of seen.pods) {
    const node = pod.spec.nodeName;
    if (node !== undefined) load.set(node, (load.get(node) ?? 0) + 1);
  }
  for (const deployment of seen.deployments) {
    const mine = podsOf(deployment, seen.pods);
    const wanted = deployment.spec.replicas ?? 1;
    surplus.push(...mine.slice(wanted));
    for (let index = mine.length; index < wanted; index += 1) {
      const node = leastLoaded(schedulable(seen.nodes, deployment.spec.template), load);
      if (node === undefined) break;
      load.set(node, (load.get(node) ?? 0) + 1);
      create.push(podFrom(deployment, 'Deployment', deployment.spec.template, node));
    }
  }
  for (const daemonSet of seen.daemonSets) {
    const mine = podsOf(daemonSet, seen.pods);
    const nodes = seen.nodes.filter((node) => matchesNodeSelector(node, daemonSet.spec.template));
    const names = new Set(nodes.map((node) => node.metadata.name));
    surplus.push(...mine.filter((pod) => !names.has(pod.spec.nodeName ?? '')));
    for (const name of names) {
      if (mine.some((pod) => pod.spec.nodeName === name)) continue;
      create.push(podFrom(daemonSet, 'DaemonSet', daemonSet.spec.template, name));
    }
  }
  return { create, delete: surplus };
}

/** @returns the pods that an owner made and that are not on their way out. */
export function podsOf(owner: Owner, pods: readonly Pod[]): Pod[] {
  return pods
    .filter((pod) => pod.metadata.deletionTimestamp === undefined)
    .filter((pod) => pod.metadata.ownerReferences?.some((reference) => reference.uid === owner.metadata.uid))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

function schedulable(nodes: readonly Node[], template: PodTemplate): Node[] {
  return nodes.filter(
    (node) => node.spec?.unschedulable !== true && isReady(node) && matchesNodeSelector(node, template),
  );
}

function isReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

function matchesNodeSelector(node: Node, template: PodTemplate): boolean {
  return Object.entries(template.spec.nodeSelector ?? {}).every(
    ([key, value]) => node.metadata.labels?.[key] === value,
  );
}

function leastLoaded(nodes: readonly Node[], load: ReadonlyMap<string, number>): string | undefined {
  const names = nodes.map((node) => node.metadata.name).sort();
  return names.reduce<string | undefined>(
    (best, name) => (best === undefined || (load.get(name) ?? 0) < (load.get(best) ?? 0) ? name : best),
    undefined,
  );
}

function podFrom(
  owner: Owner,
  kind: 'Deployment' | 'DaemonSet',
  template: PodTemplate,
  node: string,
): NewObject<Pod> {
  const apps: Kind<KubernetesObject> = { group: 'apps', version: 'v1', kind, plural: '', namespaced: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: `${owner.metadata.name}-`,
      ...(owner.metadata.namespace === undefined ? {} : { namespace: owner.metadata.namespace }),
      labels: { ...template.metadata?.labels },
      ...(template.metadata?.annotations === undefined ? {} : { annotations: template.metadata.annotations }),
      ownerReferences: [
        {
          apiVersion: apiVersionOf(apps),
          kind,
          name: owner.metadata.name,
          uid: owner.metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { ...template.spec, nodeName: node },
  };
}

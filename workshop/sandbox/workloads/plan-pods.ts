import type {
  DaemonSet,
  Deployment,
  Node,
  Pod,
  PodTemplate,
  Taint,
  Toleration,
} from '../../../api/kubernetes.ts';
import { matchesSelector } from '../../../api/label-selector.ts';
import type { KubernetesObject, NewObject } from '../../../api/object.ts';
import { by } from '../../../api/order.ts';
import { present } from '../../../api/present.ts';
import {
  isStaying,
  nextDeploymentStep,
  outdatedDaemons,
  TEMPLATE_LABELS,
  templateHash,
} from './plan-rollout.ts';

/**
 * What the kube-controller-manager and the scheduler would do with Deployments and DaemonSets, as far as a sandbox
 * needs it: which pods to create, where, and which to delete.
 */
export interface WorkloadObservation {
  readonly deployments: readonly Deployment[];
  readonly daemonSets: readonly DaemonSet[];
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
  /** {@link podKey} of pods that are no more. */
  readonly former: ReadonlySet<string>;
}

export interface PodPlan {
  readonly create: readonly NewObject<Pod>[];
  readonly delete: readonly Pod[];
  /** Pods that somebody else created, and the nodes for them. */
  readonly bind: readonly { readonly pod: Pod; readonly node: string }[];
}

type Owner = Deployment | DaemonSet;

/**
 * @returns the pods to create, each with a node, and the pods to delete. A Deployment's pod without a node to go to is
 *   not created: it comes when there is one.
 */
export function planPods(observed: WorkloadObservation): PodPlan {
  const load = new Map<string, number>();
  for (const { spec } of observed.pods) {
    if (spec.nodeName !== undefined) load.set(spec.nodeName, (load.get(spec.nodeName) ?? 0) + 1);
  }
  const plans = [
    ...observed.deployments.map((deployment) => planDeployment(deployment, observed, load)),
    ...observed.daemonSets.map((daemonSet) => planDaemonSet(daemonSet, observed)),
  ];
  return {
    create: plans.flatMap((plan) => plan.create),
    delete: [...plans.flatMap((plan) => plan.delete), ...orphans(observed)],
    bind: observed.pods.flatMap((pod) => planBinding(pod, observed, load)),
  };
}

/** @returns the pods whose owner is gone: where kube-apiserver runs alone, nobody else collects them. */
function orphans({ deployments, daemonSets, pods }: WorkloadObservation): Pod[] {
  const owners = new Set([...deployments, ...daemonSets].map(({ metadata }) => metadata.uid));
  return pods.filter(({ metadata, spec }) => {
    if (metadata.deletionTimestamp !== undefined) return false;
    const owner = metadata.ownerReferences?.[0];
    // Elsewhere a Deployment's pods belong to its ReplicaSet, and a DaemonSet's have random names.
    const isMadeHere =
      owner?.kind === 'Deployment' ||
      (owner?.kind === 'DaemonSet' && metadata.name === `${owner.name}-${spec.nodeName}`);
    return isMadeHere && !owners.has(owner.uid);
  });
}

/** What the scheduler does. @returns no binding for a pod that has a node, or for which there is none. */
function planBinding(pod: Pod, { nodes }: WorkloadObservation, load: Map<string, number>): PodPlan['bind'] {
  if (pod.spec.nodeName !== undefined || pod.metadata.deletionTimestamp !== undefined) return [];
  const fit = schedulable(nodes, pod);
  const best = Math.max(...fit.map((node) => preferenceFor(node, pod.spec)));
  const node = leastLoaded(
    fit.filter((candidate) => preferenceFor(candidate, pod.spec) === best),
    load,
  );
  if (node === undefined) return [];
  load.set(node, (load.get(node) ?? 0) + 1);
  return [{ pod, node }];
}

interface NodePreference {
  readonly weight: number;
  readonly preference: {
    readonly matchExpressions: readonly {
      readonly key: string;
      readonly operator: string;
      readonly values?: readonly string[];
    }[];
  };
}

/** Of a pod's preferred node affinity, the weights that a node earns (Kubernetes, "Node affinity weight"). */
function preferenceFor({ metadata }: Node, { affinity }: Pod['spec']): number {
  const { nodeAffinity } = (affinity ?? {}) as {
    nodeAffinity?: { preferredDuringSchedulingIgnoredDuringExecution?: readonly NodePreference[] };
  };
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const matches = ({ preference }: NodePreference) =>
    preference.matchExpressions.every(({ key, operator, values = [] }) => {
      const value = metadata.labels?.[key];
      return value !== undefined && (operator === 'Exists' || values.includes(value));
    });
  return preferred.filter(matches).reduce((sum, { weight }) => sum + weight, 0);
}

/** @param load pods by node; the planned ones are added, so that they spread. */
function planDeployment(
  deployment: Deployment,
  observed: WorkloadObservation,
  load: Map<string, number>,
): Omit<PodPlan, 'bind'> {
  const step = nextDeploymentStep(deployment, ownPods(deployment, observed.pods));
  const create: NewObject<Pod>[] = [];
  for (const name of freeNames(deployment, observed).slice(0, step.create)) {
    const node = leastLoaded(schedulable(observed.nodes, deployment.spec.template), load);
    if (node === undefined) break;
    load.set(node, (load.get(node) ?? 0) + 1);
    create.push(podFrom(deployment, 'Deployment', name, node));
  }
  return { create, delete: step.delete };
}

function planDaemonSet(daemonSet: DaemonSet, observed: WorkloadObservation): Omit<PodPlan, 'bind'> {
  const mine = podsOf(daemonSet, observed.pods);
  const nodes = nodesOf(daemonSet, observed.nodes);
  const isWanted = ({ spec }: Pod) => nodes.includes(spec.nodeName ?? '');
  const taken = new Set(
    observed.pods.filter((pod) => sameNamespace(pod, daemonSet)).map((pod) => pod.metadata.name),
  );
  return {
    create: nodes
      .filter((node) => !mine.some((pod) => pod.spec.nodeName === node))
      .map((node) => podFrom(daemonSet, 'DaemonSet', `${daemonSet.metadata.name}-${node}`, node))
      .filter((pod) => !taken.has(pod.metadata.name ?? '')),
    delete: [
      ...mine.filter((pod) => !isWanted(pod)),
      ...outdatedDaemons(daemonSet, mine.filter(isWanted), nodes.length),
    ],
  };
}

/** @returns the names of the nodes that are to have a pod of a DaemonSet. */
export function nodesOf(daemonSet: DaemonSet, nodes: readonly Node[]): readonly string[] {
  return nodes
    .filter((node) => matchesNodeSelector(node, daemonSet.spec.template))
    .map((node) => node.metadata.name);
}

/** @returns the pods that an owner made and that are not on their way out. */
export function podsOf(owner: Owner, pods: readonly Pod[]): Pod[] {
  return ownPods(owner, pods).filter(isStaying);
}

function ownPods(owner: Owner, pods: readonly Pod[]): Pod[] {
  return pods
    .filter((pod) => pod.metadata.ownerReferences?.some((reference) => reference.uid === owner.metadata.uid))
    .sort(by(({ metadata }) => metadata.name));
}

function schedulable(nodes: readonly Node[], template: Pick<PodTemplate, 'spec'>): Node[] {
  return nodes.filter(
    (node) =>
      node.spec?.unschedulable !== true &&
      isReady(node) &&
      matchesNodeSelector(node, template) &&
      toleratesTaints(node, template),
  );
}

/** Kubernetes, "Taints and Tolerations"; of a taint that only prefers other nodes nothing is made. */
function toleratesTaints(node: Node, template: Pick<PodTemplate, 'spec'>): boolean {
  const { tolerations = [] } = template.spec;
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect !== 'PreferNoSchedule');
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== taint.effect) return false;
  if (operator === 'Exists') return key === undefined || key === taint.key;
  return key === taint.key && (value ?? '') === (taint.value ?? '');
}

function isReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

function matchesNodeSelector(node: Node, template: Pick<PodTemplate, 'spec'>): boolean {
  return matchesSelector({ matchLabels: template.spec.nodeSelector ?? {} }, node.metadata.labels ?? {});
}

function leastLoaded(nodes: readonly Node[], load: ReadonlyMap<string, number>): string | undefined {
  const names = nodes.map((node) => node.metadata.name).sort();
  return names.reduce<string | undefined>(
    (best, name) => (best === undefined || (load.get(name) ?? 0) < (load.get(best) ?? 0) ? name : best),
    undefined,
  );
}

/**
 * Names for new pods of a Deployment: counted, and of no pod that is or was there. A name that is worked out, not
 * drawn, makes a pod created a moment ago, and not seen yet, impossible to create twice. A PodDisruptionBudget takes a
 * pod that was evicted for gone, by its name, for two minutes (its status.disruptedPods), and so would a new one of
 * that name.
 */
function freeNames(deployment: Deployment, { pods, former }: WorkloadObservation): string[] {
  const { name, namespace } = deployment.metadata;
  const taken = new Set([...former, ...pods.map(({ metadata }) => podKey(metadata))]);
  const candidates = Array.from(
    { length: taken.size + (deployment.spec.replicas ?? 1) },
    (_, index) => `${name}-${index}`,
  );
  return candidates.filter((candidate) => !taken.has(podKey({ namespace, name: candidate })));
}

/** @returns what distinguishes a pod from all others. */
export function podKey({
  namespace = '',
  name,
}: {
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  return `${namespace}/${name}`;
}

function sameNamespace(a: KubernetesObject, b: KubernetesObject): boolean {
  return a.metadata.namespace === b.metadata.namespace;
}

function podFrom(owner: Owner, kind: 'Deployment' | 'DaemonSet', name: string, node: string): NewObject<Pod> {
  const { template } = owner.spec;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...present({ namespace: owner.metadata.namespace }),
      labels: { ...template.metadata?.labels, [TEMPLATE_LABELS[kind]]: templateHash(owner) },
      ...present({ annotations: template.metadata?.annotations }),
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
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

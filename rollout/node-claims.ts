import type { Node } from '../api/kubernetes.ts';
import type { MachineReference } from '../api/machine-owner.ts';
import { clusterKind, type Kind, type KubernetesObject } from '../api/object.ts';
import { type ApiClient, isNotFound } from '../cluster/api-client.ts';
import { isRecent } from '../cluster/is-recent.ts';

/** The parts of a Machine of Cluster API that matter here. */
export interface ClusterApiMachine extends KubernetesObject {
  readonly spec?: { readonly providerID?: string };
  readonly status?: { readonly nodeRef?: { readonly name?: string } };
}

/** The Machine that a Node names; Cluster API and OpenShift each have a kind of that name. */
interface NamedMachine extends MachineReference {
  /** Versions of the kind, the newest first: which of them a cluster serves depends on its age. */
  readonly kinds: readonly Kind<ClusterApiMachine>[];
}

const machines = (group: string, version: string): Kind<ClusterApiMachine> => ({
  group,
  version,
  kind: 'Machine',
  plural: 'machines',
  namespaced: true,
});
const OPENSHIFT_MACHINES = [machines('machine.openshift.io', 'v1beta1')];
/** The newest first. */
export const CLUSTER_API_MACHINES = [
  machines('cluster.x-k8s.io', 'v1beta2'),
  machines('cluster.x-k8s.io', 'v1beta1'),
] as const;

/** On a Node: `namespace/name` of its Machine (openshift/machine-api-operator, nodelink controller). */
const OPENSHIFT_MACHINE = 'machine.openshift.io/machine';
/** On a Node: its Machine and where that is (kubernetes-sigs/cluster-api, api/core, "NodeAnnotations"). */
const CLUSTER_API_MACHINE = 'cluster.x-k8s.io/machine';
const CLUSTER_API_NAMESPACE = 'cluster.x-k8s.io/cluster-namespace';

/** ms for which an answer holds. */
const MACHINE_ANSWER_HOLDS = 30_000;

/**
 * Reads which nodes' Machines are being deleted. It gets single Machines, of nodes that are about to be taken or may be
 * about to be deleted. It does not watch them, because most clusters don't have the kind, and Machines are many.
 */
export class MachineLookup {
  readonly #client: ApiClient;
  readonly #now: () => number;
  readonly #answers = new Map<string, { readonly at: number; readonly deleting: boolean }>();

  /** @param now ms since the epoch. */
  constructor(client: ApiClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** @returns whether the node's Machine was being deleted when it was last asked for, lately. */
  known(node: Node): boolean {
    return this.#fresh(node)?.deleting === true;
  }

  /**
   * @returns whether the node's Machine is being deleted; false for a node without one, or where the kind is not
   *   served.
   * @throws ApiError
   */
  async isDeleting(node: Node, signal: AbortSignal): Promise<boolean> {
    const reference = machineOf(node);
    if (reference === undefined) return false;
    const fresh = this.#fresh(node);
    if (fresh !== undefined) return fresh.deleting;
    const deleting = await isDeleting(this.#client, reference, signal);
    this.#answers.set(node.metadata.name, { at: this.#now(), deleting });
    return deleting;
  }

  #fresh({ metadata }: Node) {
    const answer = this.#answers.get(metadata.name);
    if (answer === undefined || isRecent(answer.at, this.#now(), MACHINE_ANSWER_HOLDS)) return answer;
    this.#answers.delete(metadata.name);
    return undefined;
  }
}

async function isDeleting(client: ApiClient, named: NamedMachine, signal: AbortSignal): Promise<boolean> {
  const found = await findMachine(client, named, signal);
  return found?.machine.metadata.deletionTimestamp !== undefined;
}

interface FoundMachine {
  readonly machine: ClusterApiMachine;
  /** In the version that the cluster serves. */
  readonly kind: Kind<ClusterApiMachine>;
}

async function findMachine(
  client: ApiClient,
  { kinds, namespace, name }: NamedMachine,
  signal: AbortSignal,
): Promise<FoundMachine | undefined> {
  for (const kind of kinds) {
    // A kind that is not served answers 404 like an object that is not there.
    const machine = await client.find(kind, name, { namespace, signal });
    if (machine !== undefined) return { machine, kind };
  }
  return undefined;
}

/** @returns undefined for one that doesn't exist, and where the kind is not served. @throws ApiError */
export function findClusterApiMachine(
  client: ApiClient,
  reference: MachineReference,
  signal: AbortSignal,
): Promise<FoundMachine | undefined> {
  return findMachine(client, { ...reference, kinds: CLUSTER_API_MACHINES }, signal);
}

function machineOf(node: Node): NamedMachine | undefined {
  const [namespace, name] = (node.metadata.annotations?.[OPENSHIFT_MACHINE] ?? '').split('/');
  if (namespace && name) return { kinds: OPENSHIFT_MACHINES, namespace, name };
  const reference = clusterApiMachineOf(node);
  return reference && { kinds: CLUSTER_API_MACHINES, ...reference };
}

/** @returns the Machine of Cluster API that a Node names; whether there is one says only the Machine. */
export function clusterApiMachineOf({
  metadata: { annotations = {} },
}: Pick<Node, 'metadata'>): MachineReference | undefined {
  const name = annotations[CLUSTER_API_MACHINE];
  const namespace = annotations[CLUSTER_API_NAMESPACE];
  return name && namespace ? { namespace, name } : undefined;
}

/** The part of medik8s' NodeMaintenance (Node Maintenance Operator) that matters here. */
interface NodeMaintenance extends KubernetesObject {
  readonly spec: { readonly nodeName: string };
}

const NodeMaintenances = clusterKind<NodeMaintenance>(
  'nodemaintenance.medik8s.io/v1beta1',
  'NodeMaintenance',
);

/** ms for which an answer holds. That operator takes the node lease as well, so nothing rests on this alone. */
const ANSWER_HOLDS = 5_000;

/**
 * Reads which nodes are in maintenance. It lists them only when a node is about to be taken, and does not watch them:
 * most clusters don't have the kind, and a watch would fail there forever.
 */
export class MaintenanceLookup {
  readonly #client: ApiClient;
  readonly #now: () => number;
  #answer: { readonly at: number; readonly nodes: ReadonlySet<string> } | undefined;

  /** @param now ms since the epoch. */
  constructor(client: ApiClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /**
   * A NodeMaintenance is active for as long as it exists, its finalizer included.
   *
   * @returns the nodes' names; none where the Node Maintenance Operator is not installed.
   * @throws ApiError
   */
  async nodes(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const at = this.#now();
    if (this.#answer !== undefined && isRecent(this.#answer.at, at, ANSWER_HOLDS)) return this.#answer.nodes;
    const nodes = await nodesInMaintenance(this.#client, signal);
    this.#answer = { at, nodes };
    return nodes;
  }
}

async function nodesInMaintenance(client: ApiClient, signal: AbortSignal): Promise<ReadonlySet<string>> {
  try {
    const { items } = await client.list(NodeMaintenances, { signal });
    return new Set(items.map(({ spec }) => spec.nodeName));
  } catch (error) {
    if (isNotFound(error)) return new Set();
    throw error;
  }
}

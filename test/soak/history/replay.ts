import type { Lease, Node } from '../../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import { by } from '../../../api/order.ts';
import type { History, HistoryEvent, ObjectVersion } from './history.ts';

/** The objects of the cluster at one moment of a history. */
export class PastCluster {
  readonly #objects = new Map<string, Map<string, KubernetesObject>>();

  /** @returns the objects of a kind. `T` is what the kind's objects are. */
  list<T extends KubernetesObject>(kind: string): readonly T[] {
    return [...(this.#objects.get(kind)?.values() ?? [])] as T[];
  }

  get<T extends KubernetesObject>(kind: string, name: string, namespace = ''): T | undefined {
    return this.#objects.get(kind)?.get(`${namespace}/${name}`) as T | undefined;
  }

  node(name: string): Node | undefined {
    return this.get<Node>('Node', name);
  }

  machineConfigNode(name: string): MachineConfigNode | undefined {
    return this.get<MachineConfigNode>('MachineConfigNode', name);
  }

  /** @returns the Lease that gives the right to disrupt a node. */
  nodeLease(name: string): Lease | undefined {
    return this.get<Lease>('Lease', `node-${name}`, LEASES);
  }

  /** @returns what the object was before. */
  apply({ type, object }: ObjectVersion): KubernetesObject | undefined {
    const { name, namespace = '' } = object.metadata;
    const key = `${namespace}/${name}`;
    const objects = this.#objects.get(object.kind) ?? new Map<string, KubernetesObject>();
    this.#objects.set(object.kind, objects);
    const before = objects.get(key);
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, object);
    return before;
  }
}

/** Where the campaign's operator has its node leases: the default. */
const LEASES = 'medik8s-leases';

/** One event, and the cluster right after it. */
export interface Moment {
  readonly event: HistoryEvent;
  readonly cluster: PastCluster;
  /** Where the event is a version of an object: the version before. */
  readonly before: KubernetesObject | undefined;
}

/**
 * Replays a history. Watches of different kinds may be behind one another, so versions of objects come in the order in
 * which the API server wrote them.
 *
 * @returns each event with the cluster right after it. The cluster is one object that changes.
 */
export function* replay({ events }: History): Generator<Moment> {
  const cluster = new PastCluster();
  for (const event of inOrderOfWrites(events)) {
    const before = event.what === 'object' ? cluster.apply(event) : undefined;
    yield { event, cluster, before };
  }
}

/** Other events stay where they are; the versions of objects trade their places with one another. */
function inOrderOfWrites(events: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const writes = events.filter((event) => event.what === 'object').sort(by(versionOf));
  let next = 0;
  return events.map((event) => {
    if (event.what !== 'object') return event;
    const written = writes[next] ?? event;
    next += 1;
    return written;
  });
}

/** Both API servers count all writes in one row: the embedded one, and etcd behind kube-apiserver. */
function versionOf({ object }: ObjectVersion): number {
  return Number(object.metadata.resourceVersion ?? 0);
}

import { type Deployment, type Node, Nodes } from '../../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../../api/machine-config-node.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { createInformer } from '../../../cluster/informer.ts';
import { planPods } from '../../../workshop/sandbox/workloads/plan-pods.ts';
import { log } from '../../e2e/cluster-under-test.ts';

/** A pod of somebody's, which tolerates nothing. */
const WEB: Deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default', uid: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [] } },
  },
};

/** How a node was when a scheduler would have placed a pod on it for the first time. */
interface FirstPod {
  readonly atMs: number;
  /** What its daemon reported by then. */
  readonly reported: MachineConfigNode['status'];
}

/** Watches for the first moment at which a scheduler places a pod on a node. */
export interface PodWatch {
  firstPodOn(node: string): FirstPod | undefined;
  /** A Node of that name is another one from then on. */
  forget(node: string): void;
}

/** @returns it once it sees every change of a Node; it ends with the signal. */
export async function watchPods(client: ApiClient, signal: AbortSignal): Promise<PodWatch> {
  const firsts = new Map<string, FirstPod>();
  const seen = new Map<string, Promise<void>>();
  const nodes = createInformer(client, Nodes, { log });
  const look = async ({ metadata: { name } }: Node) => {
    const { status } = await client.get(MachineConfigNodes, name, { signal });
    firsts.set(name, { atMs: performance.now(), reported: status });
  };
  nodes.onChange(({ object }) => {
    const { name } = object.metadata;
    if (seen.has(name) || !takesPod(object)) return;
    seen.set(name, look(object));
  });
  void nodes.start(signal);
  await nodes.synced();
  return {
    firstPodOn: (node) => firsts.get(node),
    forget: (node) => {
      firsts.delete(node);
      seen.delete(node);
    },
  };
}

function takesPod(node: Node): boolean {
  const nothing = { daemonSets: [], pods: [], former: new Set<string>() };
  return planPods({ ...nothing, deployments: [WEB], nodes: [node] }).create.length > 0;
}

import type { Pod, Taint } from '../../../api/kubernetes.ts';
import { ApiError } from '../../../cluster/api-client.ts';
import {
  createMaintenance,
  giveNodeBack,
  type Holder,
  KUBEVIRT_TAINT,
  KubeVirtMaintenances,
  THEIR_TAINTS,
  takeNode,
} from '../../fixtures/fleet/holders.ts';
import type { Random } from '../world/random.ts';
import type { World } from '../world/world.ts';
import type { Cast, FaultKind, Stage } from './fault.ts';
import { restartKubelet } from './node-faults.ts';

/** At most so many scripted nodes are taken by one fault. */
const MOST_NODES = 10;
const SHORTEST_MS = 6_000;
const LONGEST_MS = 50_000;

/** How somebody takes nodes in hand, and gives them back. */
interface Hand {
  readonly details?: string;
  /** @returns why not; undefined when the node is theirs. */
  take(stage: Stage, node: string): Promise<string | undefined>;
  give(stage: Stage, node: string): Promise<void>;
}

interface Neighbour {
  readonly kind: string;
  readonly weight: number;
  /** ms; longer where Shale reads their sign now and then only. */
  readonly shortestMs?: number;
  draw(random: Random): Hand;
}

const NEIGHBOURS: readonly Neighbour[] = [
  { kind: 'lease taken', weight: 2, draw: () => handOf('lease') },
  { kind: 'node tainted', weight: 2, draw: (random) => taints(random.pick(THEIR_TAINTS)) },
  { kind: 'NodeMaintenance', weight: 2, shortestMs: 15_000, draw: () => handOf('maintenance') },
  { kind: 'NodeMaintenance of KubeVirt', weight: 1, draw: () => kubeVirt },
  { kind: 'flagged for maintenance', weight: 1, draw: () => handOf('flag') },
  { kind: 'powered off', weight: 2, draw: () => powersOff },
  { kind: 'Machine deleted', weight: 1, shortestMs: 40_000, draw: () => handOf('machine-deletion') },
  { kind: 'Node being deleted', weight: 1, draw: () => deletes },
  { kind: 'drained by others', weight: 2, draw: () => drains },
];

function handOf(holder: Holder): Hand {
  return {
    take: ({ world }, node) => takeNode(world.client, holder, node),
    give: ({ world }, node) => giveNodeBack(world.client, holder, node),
  };
}

function taints(taint: Taint): Hand {
  return {
    details: taint.key,
    take: ({ world }, node) => takeNode(world.client, 'taint', node, taint),
    give: ({ world }, node) => giveNodeBack(world.client, 'taint', node, taint),
  };
}

const kubeVirtName = (node: string) => `kubevirt-${node}`;
const kubeVirt: Hand = {
  take: async ({ world: { client } }, node) => {
    // The taint goes with a Node that is deleted meanwhile; the object stays.
    if ((await client.find(KubeVirtMaintenances, kubeVirtName(node))) !== undefined)
      return 'is in maintenance already';
    const why = await takeNode(client, 'taint', node, KUBEVIRT_TAINT);
    if (why === undefined) await createMaintenance(client, KubeVirtMaintenances, kubeVirtName(node), node);
    return why;
  },
  give: async ({ world: { client } }, node) => {
    await client.delete(KubeVirtMaintenances, kubeVirtName(node));
    await giveNodeBack(client, 'taint', node, KUBEVIRT_TAINT);
  },
};

/** A machine of the sandbox runs on: it came back by itself. */
const powersOff: Hand = {
  take: async ({ world }, node) => {
    const why = await takeNode(world.client, 'power-off', node);
    if (why === undefined && isScripted(world, node)) await world.scripted?.setReady(node, false);
    return why;
  },
  give: async ({ world }, node) => {
    if (isScripted(world, node)) await world.scripted?.setReady(node, true);
    await giveNodeBack(world.client, 'power-off', node);
  },
};

/** Its kubelet registers a Node again that is gone. */
const deletes: Hand = {
  take: ({ world }, node) => takeNode(world.client, 'node-deletion', node),
  give: async ({ world }, node) => {
    await giveNodeBack(world.client, 'node-deletion', node);
    if (isScripted(world, node)) await world.scripted?.registerAgain(node);
    else await restartKubelet(world, node);
  },
};

/** As kubectl drain does it. */
const drains: Hand = {
  take: async ({ world, admin }, node) => {
    const why = await admin.cordon(node);
    if (why === undefined) await evictPods(world, node);
    return why;
  },
  give: ({ admin }, node) => admin.uncordon(node),
};

async function evictPods({ client, observer }: World, node: string): Promise<void> {
  const pods = observer.cluster.list<Pod>('Pod').filter(({ spec }) => spec.nodeName === node);
  for (const { metadata } of pods) {
    if (metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') === true) continue;
    const { name, namespace = 'default' } = metadata;
    await client.evict({ name, namespace }).catch((error: unknown) => {
      // It is gone, or its budget refuses: a drain goes on with the next one.
      if (!(error instanceof ApiError)) throw error;
    });
  }
}

function isScripted({ machines }: World, node: string): boolean {
  return !machines.includes(node);
}

function faultOf({ kind, weight, shortestMs = SHORTEST_MS, draw }: Neighbour): FaultKind {
  return {
    weight,
    draw(random, cast) {
      const nodes = drawNodes(random, cast);
      const lastsMs = random.between(shortestMs, LONGEST_MS);
      const hand = draw(random);
      const taken: string[] = [];
      return {
        kind,
        subject: nodes.join(' '),
        details: `${hand.details === undefined ? '' : `${hand.details} `}for ${lastsMs} ms`,
        lastsMs,
        begin: async (stage) => {
          const refused: string[] = [];
          for (const node of nodes) {
            const why = await hand.take(stage, node);
            if (why === undefined) taken.push(node);
            else refused.push(`${node} ${why}`);
          }
          return refused.length === 0 ? undefined : refused.join(', ');
        },
        end: async (stage) => {
          for (const node of taken) await hand.give(stage, node);
        },
      };
    },
  };
}

function drawNodes(random: Random, { machines, scripted }: Cast): readonly string[] {
  if (scripted.length === 0 || random.next() < 0.3) return [random.pick(machines)];
  const count = random.between(1, MOST_NODES);
  return [...new Set(Array.from({ length: count }, () => random.pick(scripted)))];
}

/** Others who hold nodes, each by signs of their own. */
export const holderFaults: readonly FaultKind[] = NEIGHBOURS.map(faultOf);

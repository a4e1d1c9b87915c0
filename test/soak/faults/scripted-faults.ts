import type { ScriptedNodes } from '../world/scripted-nodes.ts';
import type { World } from '../world/world.ts';
import type { FaultKind } from './fault.ts';

/** The Node is deleted, and its kubelet registers it again. */
const nodeDeleted: FaultKind = {
  weight: 3,
  draw(random, { scripted }) {
    const node = random.pick(scripted);
    const lastsMs = random.between(100, 10_000);
    return {
      kind: 'Node deleted',
      subject: node,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: ({ world }) => nodesOf(world).delete(node, false),
      end: ({ world }) => nodesOf(world).registerAgain(node),
    };
  },
};

/** A machine is taken away, also in the middle of an update. */
const nodeLeaves: FaultKind = {
  weight: 2,
  draw(random, { scripted }) {
    const node = random.pick(scripted);
    return {
      kind: 'node leaves',
      subject: node,
      begin: ({ world }) => nodesOf(world).delete(node, true),
    };
  },
};

const nodeNotReady: FaultKind = {
  weight: 2,
  draw(random, { scripted, longestMs }) {
    const node = random.pick(scripted);
    const lastsMs = random.between(500, longestMs);
    return {
      kind: 'node not Ready',
      subject: node,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: ({ world }) => nodesOf(world).setReady(node, false),
      end: async ({ world }) => void (await nodesOf(world).setReady(node, true)),
    };
  },
};

/** As of a daemon that hangs, or waits for a registry. */
const daemonHangs: FaultKind = {
  weight: 2,
  draw(random, { scripted, longestPauseMs }) {
    const node = random.pick(scripted);
    const lastsMs = random.between(500, longestPauseMs);
    return {
      kind: 'daemon hangs',
      subject: node,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        nodesOf(world).hold(node, true);
        return undefined;
      },
      end: async ({ world }) => nodesOf(world).hold(node, false),
    };
  },
};

/** @throws Error in a world without scripted nodes. */
function nodesOf({ scripted }: World): ScriptedNodes {
  if (scripted === undefined) throw new Error('this world has no scripted nodes');
  return scripted;
}

/** Faults of scripted nodes: chosen only in campaigns that have such nodes. */
export const scriptedFaults: readonly FaultKind[] = [nodeDeleted, nodeLeaves, nodeNotReady, daemonHangs];

import type { Logger } from 'pino';
import {
  type MachineConfigNode,
  type MachineConfigNodeStatus,
  MachineConfigNodes,
  type NodeConditionType,
} from '../../api/machine-config-node.ts';
import { isReported } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { type FailingStep, formatFailing } from '../../cluster/failing-steps.ts';
import { nodeReadiness } from '../../cluster/node-readiness.ts';
import { setReadiness } from '../../cluster/readiness.ts';
import { setCondition, updateStatus } from '../../cluster/update-object.ts';
import type { Caches } from '../caches.ts';
import { inParallel } from '../in-parallel.ts';

export interface MarkParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'machineConfigNodes'>;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now: () => number;
}

const TYPE: NodeConditionType = 'StepsFailing';
const PARALLEL = 4;

/** @returns the names of those MachineConfigNodes that say that something fails. */
export function markedNodes(nodes: Iterable<MachineConfigNode>): Set<string> {
  return new Set(
    [...nodes]
      .filter(({ status }) => status?.conditions?.some(({ type }) => type === TYPE) === true)
      .map(({ metadata }) => metadata.name),
  );
}

/**
 * Has the MachineConfigNodes say what the operator can't do on their nodes. Where that can't be written either, the
 * pool says it all the same, and the next pass tries again.
 *
 * @param marked the nodes that say something of the kind; it is brought up to date.
 * @throws the signal's reason.
 */
export async function markFailing(
  { client, caches, log, now }: MarkParts,
  marked: Set<string>,
  failing: readonly FailingStep[],
  signal: AbortSignal,
): Promise<void> {
  const ofNodes = failing.filter(({ object }) => object.kind === 'Node');
  const byNode = Map.groupBy(ofNodes, ({ object }) => object.metadata.name);
  await inParallel(new Set([...marked, ...byNode.keys()]), PARALLEL, async (name) => {
    const object = caches.machineConfigNodes.get(name);
    const steps = byNode.get(name) ?? [];
    if (object === undefined) return void marked.delete(name);
    const compute = (of: MachineConfigNode) => withFailing(of, steps, new Date(now()));
    try {
      const written = await updateStatus(client, MachineConfigNodes, object, compute, { signal });
      if (written !== object) caches.machineConfigNodes.remember(written);
      if (steps.length > 0) marked.add(name);
      else marked.delete(name);
    } catch (error) {
      signal.throwIfAborted();
      log.debug({ node: name, err: error }, 'a MachineConfigNode could not say what fails');
    }
  });
}

/**
 * @returns the status with what fails, or without the condition where nothing does; unchanged before the daemon has
 * reported.
 */
function withFailing(
  { status, metadata }: MachineConfigNode,
  steps: readonly FailingStep[],
  now: Date,
): MachineConfigNodeStatus | undefined {
  if (!isReported(status)) return status;
  const { conditions: before = [] } = status;
  if (steps.length === 0 && !before.some(({ type }) => type === TYPE)) return status;
  const observedGeneration = status.observedGeneration ?? metadata.generation;
  const message = steps.map(formatFailing).join('; ');
  const condition = { type: TYPE, status: 'True', reason: steps[0]?.failure.kind ?? '', message } as const;
  const conditions =
    steps.length === 0
      ? before.filter(({ type }) => type !== TYPE)
      : setCondition(before, { ...condition, observedGeneration }, now);
  return {
    ...status,
    conditions: setReadiness(conditions, nodeReadiness(conditions), observedGeneration, now),
  };
}

import { parseRepair } from '../../api/annotation-requests.ts';
import type { FailureReason, MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { plural } from '../../api/plural.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { conditionOf, trueCondition } from '../../view/conditions.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import type { Arrival } from './pool-arrival.ts';

/** What a node's daemon last reported about changes made by hand. */
export type ReportedDrift =
  /** What differs, as text. */
  | { readonly kind: 'differs'; readonly what: string }
  /** Only what a repair doesn't overwrite, such as kernel arguments, and what to do about it. */
  | { readonly kind: 'elsewhere'; readonly message: string }
  | { readonly kind: 'none' }
  /** It runs no target at the moment, so it has not compared all of it. */
  | { readonly kind: 'unknown' };

/** @returns what the daemon last reported. */
export function reportedDrift({ status }: Pick<MachineConfigNode, 'status'>): ReportedDrift {
  const { count = 0, paths = [] } = status?.changedByHand ?? {};
  if (count > 0) {
    const more = count > paths.length ? [`and ${plural(count - paths.length, 'more path')}`] : [];
    return { kind: 'differs', what: [...paths.map(({ message }) => message), ...more].join('; ') };
  }
  const { reason, message = '' } = trueCondition(status?.conditions, 'NodeDegraded') ?? {};
  if (reason === ('UpdateIncomplete' satisfies FailureReason)) return { kind: 'differs', what: message };
  if (reason === ('ConfigDrift' satisfies FailureReason)) {
    // A daemon before 0.2 reports what was changed by hand in the message only.
    return status?.changedByHand === undefined
      ? { kind: 'differs', what: message }
      : { kind: 'elsewhere', message };
  }
  return { kind: conditionIsTrue(status?.conditions, 'Updated') ? 'none' : 'unknown' };
}

/** @returns how far a node's daemon is with the repair that its MachineConfigNode requests. */
export function repairArrival(name: string, cluster: Pick<ObservedCluster, 'machineConfigNodes'>): Arrival {
  const node = cluster.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  const stopped = (why: string): Arrival => ({ kind: 'stopped', why: `node ${name}: ${why}` });
  if (node === undefined) return stopped('the MachineConfigNode no longer exists');
  const { metadata, status } = node;
  const text = metadata.annotations?.[annotations.repair];
  if (text === undefined) return stopped('the request was removed in the meantime');
  const id = idOf(text);
  if (id === undefined) return stopped(`annotation ${annotations.repair} was replaced by an invalid one`);
  const last = status?.lastRepair;
  if (last?.id !== id) {
    const executed = conditionOf(status?.conditions, 'UpdateExecuted');
    const isBusy = executed !== undefined && executed.status !== 'False';
    const after = isBusy ? ', which first ends the update that is in progress' : '';
    return { kind: 'underway', progress: `${name}: waiting for its daemon${after}` };
  }
  if (last.result === 'Failed')
    return stopped(`the repair failed: ${last.message ?? 'no reason is reported'}`);
  const drift = reportedDrift(node);
  switch (drift.kind) {
    case 'differs':
      return stopped(`still differs after the repair: ${drift.what}`);
    case 'elsewhere':
      return stopped(`a repair does not change this: ${drift.message}`);
    case 'none':
    case 'unknown':
      return { kind: 'arrived' };
  }
}

function idOf(text: string): string | undefined {
  try {
    return parseRepair(text).id;
  } catch {
    // What is wrong with it is in the event of the daemon.
    return undefined;
  }
}

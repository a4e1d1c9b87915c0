import type { KubernetesObject } from '../../api/object.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import { isAtLeast } from '../../predict/cost.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { costOfPlan, isHindered, planPools } from '../../predict/plan.ts';
import { refuseMalformed } from '../change/file-flags.ts';
import type { LiveCluster } from '../change/live-cluster.ts';
import type { Plan } from '../command-line/agreement.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { formatPlan } from '../plan/plan-text.ts';
import type { TriedChange } from './decide-try.ts';

const reading = { limits: DEFAULT_LIMITS, isLive: true };

/**
 * @param to which side of the changes is to be in the cluster.
 * @returns what nodes do for that, as `shale plan` says it.
 * @throws {CommandError} if a pool can't apply them.
 */
export function planOfChanges(
  live: LiveCluster,
  changes: readonly TriedChange[],
  to: 'before' | 'after',
): Plan {
  const names = new Set(changes.map(({ after }) => after.metadata.name));
  const isChanged = ({ kind, metadata }: KubernetesObject) =>
    kind === 'MachineConfig' && names.has(metadata.name);
  const changed = changes.flatMap((change) => change[to] ?? []);
  const before = offlineCluster(live.objects, reading);
  const after = offlineCluster([...live.objects.filter((object) => !isChanged(object)), ...changed], reading);
  refuseMalformed(before, after);
  const plans = planPools({
    ...{ before, after, settings: defaultPolicySettings, nodeUser: DEFAULT_NODE_USER },
    live: { cluster: live, now: Date.now() },
  });
  const lines = formatPlan(plans, { diffs: 'none' }).split('\n');
  if (plans.some(isHindered))
    throw new CommandError(`some pools can't apply the change:\n  ${lines.join('\n  ')}`);
  const disrupts = plans.some((plan) => !('problems' in plan) && isAtLeast(costOfPlan(plan), 'drain'));
  return { warnings: [], lines, disrupts };
}

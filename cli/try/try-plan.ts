import type { KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import { isAtLeast } from '../../predict/cost.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { costOfPlan, isHindered } from '../../predict/plan.ts';
import { refuseMalformed } from '../change/file-flags.ts';
import type { LiveCluster } from '../change/live-cluster.ts';
import type { Plan } from '../command-line/agreement.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { formatPlan } from '../plan/plan-text.ts';
import { defaultOperatorSettings, predictChange } from '../plan/predict-change.ts';
import type { TriedChange } from './decide-try.ts';

const reading = { limits: DEFAULT_LIMITS, isLive: true };

/**
 * @param changes to be in the cluster. @param namespace where Shale runs.
 * @returns what nodes do for that, as `shale plan` says it.
 * @throws {CommandError} if a pool can't apply them; {ApiError}; the reason of the signal.
 */
export async function planOfChanges(
  live: LiveCluster,
  changes: readonly TriedChange[],
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  signal: AbortSignal,
): Promise<Plan> {
  const names = new Set(changes.map(({ after }) => after.metadata.name));
  const isChanged = ({ kind, metadata }: KubernetesObject) =>
    kind === 'MachineConfig' && names.has(metadata.name);
  const others = live.objects.filter((object) => !isChanged(object));
  const before = offlineCluster(live.objects, reading);
  const after = offlineCluster([...others, ...changes.map((change) => change.after)], reading);
  refuseMalformed(before, after);
  const predicted = await predictChange(
    { before, after, live },
    {
      settings: defaultOperatorSettings,
      registries: { flags: { plainHttp: [] }, cluster: { client, namespace } },
      signal,
    },
  );
  const plans = predicted.map(({ plan }) => plan);
  const lines = formatPlan(plans, { diffs: 'none' }).split('\n');
  if (plans.some(isHindered))
    throw new CommandError(`some pools can't apply the change:\n  ${lines.join('\n  ')}`);
  const disrupts = plans.some((plan) => !('problems' in plan) && isAtLeast(costOfPlan(plan), 'drain'));
  return { warnings: [], lines, disrupts };
}

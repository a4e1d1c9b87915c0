import type { MachineConfig } from '../../api/machine-config.ts';
import type { KubernetesObject, NewObject } from '../../api/object.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import { configBefore, tryOf } from '../../machineconfig/tried-config.ts';
import { refuseMalformed } from '../change/file-flags.ts';
import type { LiveCluster } from '../change/live-cluster.ts';
import { changedCluster, offlineCluster } from '../change/offline-cluster.ts';
import type { Plan } from '../command-line/agreement.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { isAtLeast } from '../plan/cost.ts';
import { costOfPlan, isHindered, planPools } from '../plan/plan.ts';
import { formatPlan } from '../plan/plan-text.ts';

const reading = { limits: DEFAULT_LIMITS, isLive: true };

/**
 * @returns what nodes do if these MachineConfigs are applied, as `shale plan` says it.
 * @throws {CommandError} if a pool can't apply them.
 */
export function planOfStart(live: LiveCluster, wanted: readonly NewObject<MachineConfig>[]): Plan {
  return planOf(
    live,
    changedCluster(live.objects, wanted as readonly KubernetesObject[], { prune: false, ...reading }),
  );
}

/** @returns what nodes do if these changes are undone. @throws {CommandError} if a pool can't apply that. */
export function planOfUndo(live: LiveCluster, tried: readonly MachineConfig[]): Plan {
  const names = new Set(tried.map(({ metadata }) => metadata.name));
  const isTried = ({ kind, metadata }: KubernetesObject) =>
    kind === 'MachineConfig' && names.has(metadata.name);
  const restored = tried.flatMap((config) => {
    const request = tryOf(config);
    return (request === undefined ? config : configBefore(config, request)) ?? [];
  });
  const objects = [...live.objects.filter((object) => !isTried(object)), ...restored];
  return planOf(live, offlineCluster(objects, reading));
}

function planOf(live: LiveCluster, after: ReturnType<typeof offlineCluster>): Plan {
  const before = offlineCluster(live.objects, reading);
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

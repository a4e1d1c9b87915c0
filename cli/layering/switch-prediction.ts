import type { ApiClient } from '../../cluster/api-client.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import type { SwitchState } from '../../opt-in/switch.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import type { PoolPrediction } from '../../predict/plan.ts';
import { readLiveCluster } from '../change/live-cluster.ts';
import { switchedBy } from '../change/switched-cluster.ts';
import { defaultOperatorSettings, predictChange } from '../plan/predict-change.ts';

/** What a prediction reads the cluster and registries with. */
export interface SwitchAccess {
  readonly client: ApiClient;
  /** Where Shale runs. */
  readonly namespace: string;
  readonly leaseNamespace: string;
  /** Whether registries may be asked. */
  readonly resolveTags: boolean;
  readonly signal: AbortSignal;
}

/**
 * Predicts what the layering switch costs as `shale plan` would predict it of the MachineOSConfigs that the operator
 * then creates, changes and deletes: by what MachineConfigs specify now, rendered or not.
 *
 * @throws {CommandError}; {ApiError}; the reason of the signal.
 */
export async function predictSwitch(
  { client, namespace, leaseNamespace, resolveTags, signal }: SwitchAccess,
  state: SwitchState,
): Promise<readonly PoolPrediction[]> {
  const live = await readLiveCluster(client, leaseNamespace, namespace);
  const before = offlineCluster(live.objects, { limits: DEFAULT_LIMITS, isLive: true });
  const after = switchedBy(before, state);
  const registries = resolveTags ? { flags: { plainHttp: [] }, cluster: { client, namespace } } : undefined;
  return predictChange({ before, after, live }, { settings: defaultOperatorSettings, registries, signal });
}

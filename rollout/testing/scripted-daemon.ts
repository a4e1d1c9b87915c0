import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import { Nodes } from '../../api/kubernetes.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeStatus,
  MachineConfigNodes,
  type NodeConditionType,
} from '../../api/machine-config-node.ts';
import type { Condition } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { setCondition } from '../../cluster/conditions.ts';
import { updateStatus } from '../../cluster/update-status.ts';

/** What a scripted daemon answers. */
export interface DaemonScript {
  /** What the node will have to do for a target. */
  readonly planFor: (object: MachineConfigNode) => readonly DisruptionAction[];
  /** Why the update to a target fails on this node; undefined where it works. */
  readonly failure: (object: MachineConfigNode) => string | undefined;
  /** Happens to the node in the middle of an update. */
  readonly beforeApply?: (object: MachineConfigNode) => Promise<void>;
}

/**
 * One step of a daemon that does nothing on a host but keeps to the protocol of api/machine-config-node.ts: stage, tell
 * the plan, wait for the grant, act, tell what is so. Only the operator's side is under test with it.
 *
 * @returns what it did, for a test's record.
 */
export async function stepDaemon(
  client: ApiClient,
  object: MachineConfigNode,
  script: DaemonScript,
): Promise<'idle' | 'given up' | 'staged' | 'waiting' | 'failed' | 'applied' | 'rebooted'> {
  const { spec, status = {} } = object;
  const config = spec.configVersion.desired;
  const image = spec.configImage?.desiredImage;
  const isCurrent = status.configVersion?.current === config && status.configImage?.currentImage === image;
  if (isCurrent && status.plan === undefined) return 'idle';
  const write = (next: MachineConfigNodeStatus) =>
    client.replaceStatus(MachineConfigNodes, { ...object, status: next });
  if (isCurrent) {
    const { plan: _given, ...kept } = status;
    await write({ ...kept, conditions: say(status, ['Updated', 'True'], ['NodeDegraded', 'False']) });
    return 'given up';
  }
  const actions = [...script.planFor(object)];
  const target = { config, ...(image === undefined ? {} : { image }) };
  if (status.plan?.config !== config || status.plan.image !== image) {
    await write({
      ...status,
      plan: { ...target, staged: true, actions, causes: [], source: 'script' },
      conditions: say(status, ['Updated', 'False'], ['NodeDegraded', 'False'], ['UpdatePrepared', 'True']),
    });
    return 'staged';
  }
  const { grant } = spec;
  const disruptive = isDisruptive(actions);
  const mayAct =
    grant?.config === config && grant.image === image && (grant.level === 'Disrupt' || !disruptive);
  if (!mayAct) return 'waiting';
  const why = script.failure(object);
  if (why !== undefined) {
    await write({ ...status, conditions: say(status, ['Updated', 'False'], ['NodeDegraded', 'True', why]) });
    return 'failed';
  }
  const startedAt = new Date().toISOString();
  await script.beforeApply?.(object);
  const reboots = actions.some(({ type }) => type === 'Reboot');
  const { plan: _done, configImage: _old, ...kept } = status;
  const bootID = reboots ? `boot-of-${config}` : (status.bootID ?? 'first-boot');
  await write({
    ...kept,
    configVersion: { current: config, desired: config },
    ...(image === undefined ? {} : { configImage: { currentImage: image, desiredImage: image } }),
    mode: image === undefined ? 'Standard' : 'Layered',
    bootID,
    lastUpdate: {
      ...target,
      actions,
      causes: [],
      source: 'script',
      startedAt,
      finishedAt: new Date().toISOString(),
      bootIDBefore: status.bootID ?? '',
      bootIDAfter: bootID,
      result: 'Succeeded',
    },
    conditions: say(status, ['Updated', 'True'], ['NodeDegraded', 'False']),
  });
  // Not before: where the target changed meanwhile nothing was written, and this host has not rebooted.
  if (reboots) await reportBoot(client, object.metadata.name, bootID);
  return reboots ? 'rebooted' : 'applied';
}

/** What the kubelet does after a boot. */
async function reportBoot(client: ApiClient, name: string, bootID: string): Promise<void> {
  await updateStatus(client, Nodes, await client.get(Nodes, name), ({ status }) => ({
    ...status,
    nodeInfo: { ...status?.nodeInfo, bootID },
  }));
}

type Said = readonly [type: NodeConditionType, status: 'True' | 'False', message?: string];

/** What others say in the status stays. */
function say({ conditions = [] }: MachineConfigNodeStatus, ...all: readonly Said[]): Condition[] {
  return all.reduce<Condition[]>(
    (said, [type, status, message = '']) =>
      setCondition(said, { type, status, reason: 'Scripted', message }, new Date()),
    [...conditions],
  );
}

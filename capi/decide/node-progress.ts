import { isRetryOf, parseRetry } from '../../api/annotation-requests.ts';
import { formatAction } from '../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import {
  type DaemonStage,
  failureAtTarget,
  isRollingBack,
  type Progress,
  progressOf,
  stageOf,
} from '../../rollout/pools/progress.ts';

/** How far a node is on its way to its pool's target, in words for the conditions of a Machine. */
export type NodeProgress =
  /** It runs the target, and the operator has given it back. */
  | { readonly kind: 'updated' }
  | { readonly kind: 'underWay'; readonly message: string }
  /** It stays where it is until somebody acts. `isOver`: it has tried the target and does nothing more. */
  | { readonly kind: 'failed'; readonly why: string; readonly isOver?: true };

/** @param target the pool's rendered config. */
export function nodeProgress(node: MachineConfigNode, pool: MachineConfigPool, target: string): NodeProgress {
  const { spec, status } = node;
  if (spec.configVersion.desired !== target) return beforeTarget(node, pool);
  const stage = stageOf(status?.conditions);
  if (stage !== undefined) return { kind: 'underWay', message: duringStage(stage) };
  const progress = progressOf(spec, status);
  if (progress.kind === 'updated') return afterUpdate(node);
  if (progress.kind === 'degraded') return afterFailure(node, progress);
  if (progress.kind === 'preparing') return whilePreparing(progress);
  return { kind: 'underWay', message: whileStaged(node, pool, progress) };
}

/** A layered pool's nodes keep their target until the image of the next one is there. */
function beforeTarget({ metadata }: MachineConfigNode, { status }: MachineConfigPool): NodeProgress {
  const condition = (sought: string) => status?.conditions?.find(({ type }) => type === sought);
  const failed = condition('BuildFailed');
  if (failed?.status === 'True')
    return { kind: 'failed', why: `the image can't be built: ${failed.message}` };
  const builds = ['Building', 'BuildPending'].map(condition).find((each) => each?.status === 'True');
  if (builds !== undefined) return { kind: 'underWay', message: 'the image is being built' };
  return { kind: 'underWay', message: `node ${metadata.name} is about to get the target of its pool` };
}

function duringStage(stage: DaemonStage): string {
  if (isRollingBack(stage)) return 'the update failed, and the node goes back to what it ran before';
  switch (stage.kind) {
    case 'applying':
      return 'the node applies the update';
    case 'rebooting':
      return 'the node reboots';
    case 'verifying':
      return `the node verifies the update: ${stage.condition.message}`;
  }
}

/** Without its grant and cordon the node serves again, and Cluster API may go on to the next one. */
function afterUpdate({ spec, status }: MachineConfigNode): NodeProgress {
  const isCordoned = status?.conditions?.some(({ type, status: is }) => type === 'Cordoned' && is === 'True');
  return spec.grant === undefined && isCordoned !== true
    ? { kind: 'updated' }
    : { kind: 'underWay', message: 'the node runs the update and is about to serve again' };
}

function afterFailure(
  node: MachineConfigNode,
  { why, ofAnother }: Extract<Progress, { kind: 'degraded' }>,
): NodeProgress {
  if (ofAnother === true)
    return {
      kind: 'underWay',
      message: `the node is about to take another update than the one that failed: ${why}`,
    };
  const failure = failureAtTarget(node.spec, node.status);
  if (failure !== undefined && isToRetry(node, failure))
    return { kind: 'underWay', message: 'the node is about to try the update again' };
  const back = failure?.result === 'RolledBack' ? ', and the node runs what it ran before' : '';
  const failed = { kind: 'failed' as const, why: `the update failed${back}: ${why}` };
  return failure === undefined ? failed : { ...failed, isOver: true };
}

function isToRetry(
  { metadata }: MachineConfigNode,
  failure: NonNullable<ReturnType<typeof failureAtTarget>>,
): boolean {
  const text = metadata.annotations?.[annotations.retry];
  try {
    return text !== undefined && isRetryOf(parseRetry(text), failure);
  } catch {
    // The daemon reports a request that can't be read, and doesn't carry it out.
    return false;
  }
}

function whilePreparing({ why, stalled }: Extract<Progress, { kind: 'preparing' }>): NodeProgress {
  if (stalled === 'refused') return { kind: 'failed', why: `the node can't take the update: ${why}` };
  return {
    kind: 'underWay',
    message: why === undefined ? 'the node stages the update' : `the node stages the update: ${why}`,
  };
}

function whileStaged(
  { metadata: { name }, spec, status }: MachineConfigNode,
  { status: poolStatus }: MachineConfigPool,
  { actions }: Extract<Progress, { kind: 'staged' }>,
): string {
  const blocked = status?.drain?.blockedBy ?? [];
  if (blocked.length > 0)
    return `the node is being drained, and waits for ${blocked.map(({ pod, reason }) => `${pod} (${reason})`).join(', ')}`;
  if (spec.grant !== undefined) return 'the node is about to apply the update';
  const held = poolStatus?.heldNodes?.find((each) => each.name === name)?.why;
  const waits = [
    ...(held === undefined ? [] : [held]),
    ...(poolStatus?.heldUpdates ?? []).map(({ message }) => message),
  ];
  if (waits.length > 0) return `the update is staged, and waits: ${waits.join('; ')}`;
  const needs = actions.length === 0 ? '' : `, which needs ${actions.map(formatAction).join(', ')}`;
  return `the update is staged${needs}`;
}

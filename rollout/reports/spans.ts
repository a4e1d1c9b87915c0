import { changeOf } from '../../api/change-id.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { present } from '../../api/present.ts';
import { type Span, spanIds } from '../../cluster/tracing/span.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { configOf, type PoolTarget } from '../pools/pool-target.ts';

/** ms since the epoch. */
interface Times {
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A pool was given another rendered config: with it a change begins. */
export function renderSpan(pool: string, config: string, times: Times): Span {
  const change = changeOf(config);
  return {
    name: 'render',
    change,
    id: spanIds.render(change, pool),
    ...times,
    attributes: { 'shale.pool': pool, 'shale.config': config },
  };
}

/**
 * @param before the pool's status before this look at it, @param after and what the look made of it.
 * @param renderedAt ms since the epoch, when the target's config was rendered: an earlier change may have been on its
 *   way to nodes then.
 * @param now ms since the epoch.
 * @returns the way of a pool's nodes to their target, where it is over with this look.
 */
export function rolloutSpan(
  { metadata: { name } }: MachineConfigPool,
  target: PoolTarget,
  { before, after }: Record<'before' | 'after', MachineConfigPool['status']>,
  renderedAt: number,
  now: number,
): Span | undefined {
  const config = configOf(target);
  const since = before?.conditions?.find(({ type, status }) => type === 'Updated' && status !== 'True');
  if (config === undefined || since === undefined || !conditionIsTrue(after?.conditions, 'Updated')) {
    return undefined;
  }
  const change = changeOf(config);
  const image = imageOf(target);
  return {
    name: 'rollout',
    change,
    parent: spanIds.render(change, name),
    id: spanIds.rollout(change, name, image),
    startedAt: Math.min(Math.max(Date.parse(since.lastTransitionTime), renderedAt), now),
    endedAt: now,
    attributes: {
      'shale.pool': name,
      'shale.config': config,
      ...present({ 'shale.image': image, 'shale.nodes': after?.machineCount }),
    },
  };
}

/** A node was emptied before its update. */
export function drainSpan({ metadata, spec }: MachineConfigNode, times: Times): Span {
  const change = changeOf(spec.configVersion.desired);
  return {
    name: 'drain',
    change,
    parent: spanIds.rollout(change, spec.pool.name, spec.configImage?.desiredImage),
    ...times,
    attributes: { 'shale.pool': spec.pool.name, 'k8s.node.name': metadata.name },
  };
}

function imageOf(target: PoolTarget): string | undefined {
  switch (target.kind) {
    case 'none':
    case 'awaiting-image':
      return undefined;
    case 'standard':
    case 'layered':
    case 'rolled-back':
      return target.target.image;
  }
}

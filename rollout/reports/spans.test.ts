import { describe, expect, it } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { aMachineConfigNode, aPool, condition, image, LONG_AGO } from '../../test/fixtures/objects.ts';
import type { PoolTarget } from '../pools/pool-target.ts';
import { drainSpan, renderSpan, rolloutSpan } from './spans.ts';

const CONFIG = 'rendered-worker-2';
const STANDARD: PoolTarget = { kind: 'standard', target: { config: CONFIG } };
const LAYERED: PoolTarget = {
  kind: 'layered',
  target: { config: CONFIG, image: image('2') },
  build: 'b',
  sameContent: new Set<string>(),
};
const since = Date.parse(LONG_AGO);
const pool = aPool('worker');

type Status = MachineConfigPool['status'];
const outstanding: Status = { conditions: [condition('Updated', 'False')] };
const updated: Status = { machineCount: 3, conditions: [condition('Updated')] };

describe('the span of a rollout', () => {
  const span = (target: PoolTarget, before: Status, after: Status, renderedAt = 0, now = since + 5_000) =>
    rolloutSpan(pool, target, { before, after }, renderedAt, now);

  it('lasts from when nodes were outstanding until the pool is Updated', () => {
    expect(span(STANDARD, outstanding, updated)).toMatchObject({
      name: 'rollout',
      change: changeOf(CONFIG),
      startedAt: since,
      endedAt: since + 5_000,
      attributes: { 'shale.pool': 'worker', 'shale.config': CONFIG, 'shale.nodes': 3 },
    });
  });

  it('starts with its own config, and never in the future', () => {
    expect(span(STANDARD, outstanding, updated, since + 1_000)?.startedAt).toBe(since + 1_000);
    expect(span(STANDARD, outstanding, updated, since + 9_000)?.startedAt).toBe(since + 5_000);
  });

  it('names the image, and is another one for another image', () => {
    const layered = span(LAYERED, outstanding, updated);
    expect(layered?.attributes).toMatchObject({ 'shale.image': image('2') });
    const held = {
      kind: 'rolled-back',
      target: { config: CONFIG },
      sameContent: new Set<string>(),
      why: '',
      ownTarget: LAYERED,
    } as const;
    expect(span(held, outstanding, updated)?.attributes).not.toHaveProperty('shale.image');
    expect(layered?.id).not.toEqual(span(STANDARD, outstanding, updated)?.id);
  });

  it('does not count nodes that the pool does not', () => {
    const { machineCount: _none, ...after } = { ...updated };
    expect(span(STANDARD, outstanding, after)?.attributes).not.toHaveProperty('shale.nodes');
  });

  it.each<[string, PoolTarget, Status, Status]>([
    ['has not ended', STANDARD, outstanding, outstanding],
    ['ended before', STANDARD, updated, updated],
    ['never began', STANDARD, undefined, updated],
    ['has no target', { kind: 'none', why: '' }, outstanding, updated],
  ])('is not recorded of one that %s', (_what, target, before, after) => {
    expect(span(target, before, after)).toBeUndefined();
  });
});

it('a rendering, its rollout and the drains of its nodes are of one change', () => {
  const times = { startedAt: 1, endedAt: 2 };
  const render = renderSpan('worker', CONFIG, times);
  expect(render).toMatchObject({ ...times, attributes: { 'shale.pool': 'worker', 'shale.config': CONFIG } });
  const rollout = rolloutSpan(pool, LAYERED, { before: outstanding, after: updated }, 0, since);
  expect(rollout?.parent).toEqual(render.id);
  const spec = { configVersion: { desired: CONFIG }, configImage: { desiredImage: image('2') } };
  const drain = drainSpan(aMachineConfigNode('a', spec), times);
  expect(drain).toMatchObject({ ...times, change: changeOf(CONFIG), parent: rollout?.id });
  expect(drain.attributes).toEqual({ 'shale.pool': 'worker', 'k8s.node.name': 'a' });
});

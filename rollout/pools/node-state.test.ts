import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aMachineConfigNode, aNode, condition, image, LONG_AGO, REBOOT } from '../testing/objects.ts';
import { type NodeObservation, progressOf, readNode } from './node-state.ts';

const CONFIG = 'rendered-worker-1';
const updated = { configVersion: { current: CONFIG, desired: CONFIG }, conditions: [condition('Updated')] };
const { spec } = aMachineConfigNode('n');
const layered = aMachineConfigNode('n', { configImage: { desiredImage: image('1') } }).spec;

describe('progress', () => {
  const planned = {
    plan: { config: CONFIG, staged: true, actions: [...REBOOT], causes: [], source: 'label' },
  };

  it.each([
    ['nothing said', spec, undefined, 'preparing'],
    ['runs it', spec, updated, 'updated'],
    ['runs it, not verified yet', spec, { ...updated, conditions: [] }, 'preparing'],
    [
      'runs another config',
      spec,
      { ...updated, configVersion: { current: 'x', desired: CONFIG } },
      'preparing',
    ],
    ['runs the config, not the image', layered, updated, 'preparing'],
    [
      'runs the image',
      layered,
      { ...updated, mode: 'Layered', configImage: { currentImage: image('1') } },
      'updated',
    ],
    [
      'runs an image in place of standard mode',
      spec,
      { ...updated, mode: 'Layered', configImage: { currentImage: image('1') } },
      'preparing',
    ],
    ['has it staged', spec, planned, 'staged'],
    ['has it half staged', spec, { plan: { ...planned.plan, staged: false } }, 'preparing'],
    ['has another config staged', spec, { plan: { ...planned.plan, config: 'x' } }, 'preparing'],
    ['has the config staged without the image', layered, planned, 'preparing'],
    ['failed', spec, { ...planned, conditions: [condition('NodeDegraded', 'True', 'no space')] }, 'degraded'],
  ] as const)('%s', (_what, desired, status, kind) => {
    expect(progressOf(desired, status as Parameters<typeof progressOf>[1]).kind).toBe(kind);
  });

  it('says what staging waits for', () => {
    expect(
      progressOf(spec, { conditions: [condition('UpdatePrepared', 'False', 'registry is down')] }),
    ).toEqual({
      kind: 'preparing',
      why: 'registry is down',
    });
  });
});

describe('a node', () => {
  const seen = (more: Partial<NodeObservation> = {}): NodeObservation => ({
    node: aNode('n'),
    spec,
    status: updated,
    assigned: true,
    lease: { by: 'nobody' },
    inMaintenance: false,
    ...more,
  });
  const flagged = (value: string) =>
    seen({
      node: aNode('n', { metadata: { name: 'n', annotations: { [annotations.plannedMaintenance]: value } } }),
    });
  const NOW = Date.parse('2026-06-01T00:00:00Z');

  it('of a grant for another target has none', () => {
    const grant = { level: 'Disrupt', config: 'other', leaseHolder: 'us' } as const;
    expect(readNode(seen({ spec: { ...spec, grant } }), NOW).work.grant).toBeUndefined();
    expect(readNode(seen({ spec: { ...spec, grant: { ...grant, config: CONFIG } } }), NOW).work.grant).toBe(
      'Disrupt',
    );
    expect(
      readNode(seen({ spec: { ...layered, grant: { ...grant, config: CONFIG } } }), NOW).work.grant,
    ).toBeUndefined();
  });

  it.each([
    ['{"reason":"disk","by":"ann","until":"2026-07-01T00:00:00Z"}', 'flagged for maintenance by ann: disk'],
    ['{"reason":"disk","by":"ann","until":"2026-05-01T00:00:00Z"}', undefined],
    ['{"until":"some day"}', 'flagged for maintenance'],
    ['[]', 'flagged for maintenance'],
    ['not json', `flagged for maintenance (annotation ${annotations.plannedMaintenance})`],
    ['null', `flagged for maintenance (annotation ${annotations.plannedMaintenance})`],
  ])('flagged with %s', (value, obstacle) => {
    expect(readNode(flagged(value), NOW).obstacle).toBe(obstacle);
  });

  it('that is deleted, drained away by the autoscaler or in maintenance is not to be disrupted', () => {
    const deleted = aNode('n', { metadata: { name: 'n', deletionTimestamp: LONG_AGO } });
    const doomed = aNode('n', {
      spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
    });
    for (const more of [{ node: deleted }, { node: doomed }, { inMaintenance: true }])
      expect(readNode(seen(more), NOW).obstacle).toBeDefined();
    expect(readNode(seen(), NOW).obstacle).toBeUndefined();
  });

  it('speaks from one boot only when kubelet and daemon name the same', () => {
    const kubelet = (bootID: string) => aNode('n', { status: { nodeInfo: { bootID } } });
    const daemon = { ...updated, bootID: 'new' };
    expect(readNode(seen({ node: kubelet('old'), status: daemon }), NOW).bootAgrees).toBe(false);
    expect(readNode(seen({ node: kubelet('new'), status: daemon }), NOW).bootAgrees).toBe(true);
    expect(readNode(seen({ status: daemon }), NOW).bootAgrees).toBe(true);
  });

  it('tells our cordon from others', () => {
    const marked = (mark: string) =>
      aNode('n', {
        metadata: { name: 'n', annotations: { [annotations.cordonedByShale]: mark } },
        spec: { unschedulable: true },
      });
    expect(readNode(seen({ node: marked('true') }), NOW).work.cordon).toEqual({ uncordon: true });
    expect(readNode(seen({ node: marked('false') }), NOW).work.cordon).toEqual({ uncordon: false });
    expect(readNode(seen({ node: aNode('n', { spec: { unschedulable: true } }) }), NOW)).toMatchObject({
      schedulable: false,
      work: { cordon: undefined },
    });
  });
});

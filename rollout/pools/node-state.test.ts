import { describe, expect, it } from 'vitest';
import type {
  MachineConfigNode,
  MachineConfigNodeSpec,
  UpdateRecord,
} from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import {
  aMachineConfigNode,
  aNode,
  condition,
  image,
  LONG_AGO,
  REBOOT,
} from '../../test/fixtures/objects.ts';
import { holdersOf } from '../gates/gates.ts';
import { type NodeObservation, readNode } from './node-state.ts';

const CONFIG = 'rendered-worker-1';
const updated = { configVersion: { current: CONFIG, desired: CONFIG }, conditions: [condition('Updated')] };
const { spec } = aMachineConfigNode('n');
const layered = aMachineConfigNode('n', { configImage: { desiredImage: image('1') } }).spec;

describe('a node', () => {
  const seen = (more: Partial<NodeObservation> = {}): NodeObservation => ({
    holders: [],
    node: aNode('n'),
    spec,
    status: updated,
    assigned: true,
    lease: { by: 'nobody' },
    inMaintenance: false,
    machineDeleting: false,
    ...more,
  });
  const flagged = (value: string) =>
    seen({
      node: aNode('n', { metadata: { name: 'n', annotations: { [annotations.plannedMaintenance]: value } } }),
    });
  const NOW = Date.parse('2026-06-01T00:00:00Z');
  const read = (observation: NodeObservation) =>
    readNode({ ...observation, holders: holdersOf(observation, NOW) });

  it('of a grant for another target has none', () => {
    const grant = { level: 'Disrupt', config: 'other', leaseHolder: 'us' } as const;
    expect(read(seen({ spec: { ...spec, grant } })).work.grant).toBeUndefined();
    expect(read(seen({ spec: { ...spec, grant: { ...grant, config: CONFIG } } })).work.grant).toBe('Disrupt');
    expect(
      read(seen({ spec: { ...layered, grant: { ...grant, config: CONFIG } } })).work.grant,
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
    expect(read(flagged(value)).claims.holders[0]?.message).toBe(obstacle);
  });

  it('that is deleted, drained away by the autoscaler or in maintenance is not to be disrupted', () => {
    const deleted = aNode('n', { metadata: { name: 'n', deletionTimestamp: LONG_AGO } });
    const doomed = aNode('n', {
      spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
    });
    for (const more of [{ node: deleted }, { node: doomed }, { inMaintenance: true }])
      expect(read(seen(more)).claims.holders).not.toEqual([]);
    expect(read(seen()).claims.holders).toEqual([]);
  });

  const off = (ready: 'True' | 'False', value: string, readySince = LONG_AGO) =>
    read(
      seen({
        node: aNode('n', {
          metadata: { name: 'n', annotations: { [annotations.poweredOff]: value } },
          status: { conditions: [{ ...condition('Ready', ready), lastTransitionTime: readySince }] },
        }),
      }),
    );
  const fan = '{"by":"ann","reason":"fan","since":"2026-03-01T00:00:00Z"}';

  it('that was switched off on request is waited for by nobody', () => {
    const why = 'switched off on request by ann: fan';
    expect(off('False', fan).claims.away).toEqual({ kind: 'switched-off', why });
    expect(off('False', 'not json').claims.away).toMatchObject({ kind: 'switched-off' });
  });

  it('that is about to be switched off is left alone, and so is one that came back by itself', () => {
    expect(off('True', fan).claims).toMatchObject({
      away: undefined,
      holders: [{ message: 'switched off on request by ann: fan' }],
    });
    expect(off('True', fan, '2026-03-02T00:00:00Z').claims).toMatchObject({
      away: undefined,
      holders: [
        {
          reason: 'PoweredOff',
          message:
            'it runs, but was switched off on request by ann: fan; to have it updated: shale maintenance end n',
        },
      ],
    });
    expect(off('True', '{}', '2026-03-02T00:00:00Z').claims.holders).not.toEqual([]);
  });

  it('whose Machine is deleted is neither disrupted nor waited for', () => {
    const why = 'its Machine is being deleted';
    expect(read(seen({ machineDeleting: true })).claims).toMatchObject({
      holders: [{ message: why }],
      away: { kind: 'being-deleted', why },
    });
  });

  it('speaks from one boot only when kubelet and daemon name the same', () => {
    const kubelet = (bootID: string) => aNode('n', { status: { nodeInfo: { bootID } } });
    const daemon = { ...updated, bootID: 'new' };
    expect(read(seen({ node: kubelet('old'), status: daemon })).availability.bootAgrees).toBe(false);
    expect(read(seen({ node: kubelet('new'), status: daemon })).availability.bootAgrees).toBe(true);
    expect(read(seen({ status: daemon })).availability.bootAgrees).toBe(true);
  });

  it('agrees with its kubelet after a soft reboot, which a kubelet takes for no boot', () => {
    const node = aNode('n', { status: { nodeInfo: { bootID: 'of-the-kernel' } } });
    const daemon = (bootID: string) => read(seen({ node, status: { ...updated, bootID } }));
    expect(daemon('of-the-kernel+1').availability.bootAgrees).toBe(true);
    expect(daemon('of-another-kernel+1').availability.bootAgrees).toBe(false);
  });

  it('distinguishes our cordon from others', () => {
    const marked = (mark: string) =>
      aNode('n', {
        metadata: { name: 'n', annotations: { [annotations.cordonedByShale]: mark } },
        spec: { unschedulable: true },
      });
    expect(read(seen({ node: marked('true') })).work.cordon).toEqual({ uncordon: true });
    expect(read(seen({ node: marked('false') })).work.cordon).toEqual({ uncordon: false });
    expect(read(seen({ node: aNode('n', { spec: { unschedulable: true } }) }))).toMatchObject({
      availability: { schedulable: false },
      work: { cordon: undefined },
    });
  });
});

describe('a live update that failed', () => {
  const plan = {
    config: CONFIG,
    staged: true,
    actions: [...REBOOT],
    causes: [],
    source: 'x',
    liveFailure: 'no',
  };
  const lastUpdate: UpdateRecord = {
    config: CONFIG,
    actions: [...REBOOT],
    causes: [],
    source: 'x',
    liveFailure: 'no',
    result: 'Succeeded',
    startedAt: LONG_AGO,
    finishedAt: LONG_AGO,
    bootIDBefore: '1',
    bootIDAfter: '2',
  };
  it.each<[string, MachineConfigNodeSpec, MachineConfigNode['status'], object | undefined]>([
    ['is known before the reboot', spec, { plan }, { why: 'no' }],
    ['is known after it', spec, { ...updated, lastUpdate }, { why: 'no', endedAt: Date.parse(LONG_AGO) }],
    ['was one to another image', layered, { plan, lastUpdate }, undefined],
    [
      'was one to another config',
      { ...spec, configVersion: { desired: 'x' } },
      { plan, lastUpdate },
      undefined,
    ],
    ['is not reported', spec, updated, undefined],
    ['is not known without a status', spec, undefined, undefined],
  ])('%s', (_what, desired, status, expected) => {
    const seen = { node: aNode('n'), spec: desired, status, assigned: true };
    const state = readNode({ ...seen, lease: { by: 'nobody' }, inMaintenance: false, holders: [] });
    expect(state.update.liveFailure).toEqual(expected);
  });

  it.each<[string, MachineConfigNodeSpec, UpdateRecord['result'], boolean]>([
    ['that was rolled back', spec, 'RolledBack', true],
    ['that failed', spec, 'Failed', true],
    ['that succeeded', spec, 'Succeeded', false],
    ['of another image', layered, 'Failed', false],
    ['of another config', { ...spec, configVersion: { desired: 'x' } }, 'Failed', false],
  ])('an update %s is known as a failure at the target, or not', (_what, desired, result, expected) => {
    const status = { lastUpdate: { ...lastUpdate, result } };
    const seen = { node: aNode('n'), spec: desired, status, assigned: true };
    const state = readNode({ ...seen, lease: { by: 'nobody' }, inMaintenance: false, holders: [] });
    expect(state.update.failedAtTarget).toBe(expected);
  });
});

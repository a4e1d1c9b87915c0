import { describe, expect, it } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNodeStatus, UpdateRecord } from '../../api/machine-config-node.ts';
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
import { awayOf } from './claims.ts';
import { type NodeObservation, readNode } from './node-state.ts';
import { progressOf } from './progress.ts';

const CONFIG = 'rendered-worker-1';
const NOW = Date.parse('2026-06-01T00:00:00Z');
const ROLE = 'node-role.kubernetes.io/';
const { spec } = aMachineConfigNode('a');

function read(node: Parameters<typeof aNode>[1], more: Partial<NodeObservation> = {}) {
  const seen: Omit<NodeObservation, 'holders'> = {
    node: aNode('a', node),
    spec,
    status: undefined,
    assigned: true,
    lease: { by: 'nobody' },
    inMaintenance: false,
    ...more,
  };
  return readNode({ ...seen, holders: holdersOf(seen, NOW) });
}

describe('what a Node says of itself', () => {
  it('may be nothing at all', () => {
    const { createdAt, zone, controlPlane, ...rest } = readNode({
      node: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } },
      spec,
      status: undefined,
      assigned: false,
      lease: { by: 'nobody' },
      inMaintenance: false,
      holders: [],
    });
    expect({ createdAt, zone, controlPlane }).toEqual({ createdAt: '', zone: '', controlPlane: false });
    expect(rest).toMatchObject({
      name: 'a',
      architecture: undefined,
      availability: { ready: false, notReadySince: undefined, schedulable: true, bootAgrees: true },
      update: { assigned: false },
    });
  });

  it('is its age, zone and architecture', () => {
    const metadata = {
      name: 'a',
      creationTimestamp: LONG_AGO,
      labels: { 'topology.kubernetes.io/zone': 'z' },
    };
    const status = { nodeInfo: { architecture: 'arm64' } };
    expect(read({ metadata, status })).toMatchObject({
      createdAt: LONG_AGO,
      zone: 'z',
      architecture: 'arm64',
    });
  });

  it.each([
    [[], false],
    [['worker'], false],
    [['control-plane'], true],
    [['master'], true],
    [['worker', 'master'], true],
  ])('roles %j: control plane %s', (roles, expected) => {
    const labels = Object.fromEntries(roles.map((role) => [`${ROLE}${role}`, '']));
    expect(read({ metadata: { name: 'a', labels } }).controlPlane).toBe(expected);
  });

  it.each<['True' | 'False', object]>([
    ['True', { ready: true, notReadySince: undefined }],
    ['False', { ready: false, notReadySince: Date.parse(LONG_AGO) }],
  ])('is whether it is Ready: %s', (status, expected) => {
    const conditions = [condition('DiskPressure'), condition('Ready', status)];
    expect(read({ status: { conditions } }).availability).toMatchObject(expected);
  });

  it.each([
    [undefined, undefined, true],
    ['1', undefined, true],
    [undefined, '1', true],
    ['1', '1', true],
    ['1', '2', false],
  ])('is the boot of its kubelet: %s beside %s of the daemon', (kubelet, daemon, agrees) => {
    const nodeInfo = kubelet === undefined ? {} : { bootID: kubelet };
    const status: MachineConfigNodeStatus = daemon === undefined ? {} : { bootID: daemon };
    expect(read({ status: { nodeInfo } }, { status }).availability.bootAgrees).toBe(agrees);
  });

  it.each([
    [undefined, undefined],
    ['true', { uncordon: true }],
    ['false', { uncordon: false }],
  ])('is our mark of a cordon: %s', (mark, cordon) => {
    const metadata = { name: 'a', ...(mark && { annotations: { [annotations.cordonedByShale]: mark } }) };
    expect(read({ metadata }).work.cordon).toEqual(cordon);
  });

  it('is a cordon, no matter who made it', () => {
    expect(read({ spec: { unschedulable: true } }).availability.schedulable).toBe(false);
  });
});

describe('a grant', () => {
  const grantOf = (grant: object, desired: Parameters<typeof aMachineConfigNode>[1] = {}) => {
    const object = aMachineConfigNode('a', {
      ...desired,
      grant: { level: 'Disrupt', config: CONFIG, leaseHolder: 'x', ...grant },
    });
    return read({}, { spec: object.spec }).work.grant;
  };

  it.each<[string, object, Parameters<typeof aMachineConfigNode>[1], string | undefined]>([
    ['for the target', {}, {}, 'Disrupt'],
    ['for another config', { config: 'x' }, {}, undefined],
    ['for an image in standard mode', { image: image('1') }, {}, undefined],
    ['for no image in layered mode', {}, { configImage: { desiredImage: image('1') } }, undefined],
    ['for the image', { image: image('1') }, { configImage: { desiredImage: image('1') } }, 'Disrupt'],
  ])('%s', (_what, grant, desired, level) => {
    expect(grantOf(grant, desired)).toBe(level);
  });
});

describe('the progress of a node', () => {
  const updated: MachineConfigNodeStatus = {
    configVersion: { current: CONFIG, desired: CONFIG },
    conditions: [condition('Updated')],
  };
  const record = (result: UpdateRecord['result'], more: Partial<UpdateRecord> = {}): UpdateRecord => ({
    config: CONFIG,
    actions: [],
    causes: [],
    source: '',
    result,
    bootIDBefore: '',
    bootIDAfter: '',
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: '2026-01-01T00:01:00Z',
    ...more,
  });
  const progress = (status: MachineConfigNodeStatus) => progressOf(spec, status);

  it('says so where nobody granted it', () => {
    const lastUpdate = record('Succeeded', { withoutGrant: true }) as NonNullable<
      MachineConfigNodeStatus['lastUpdate']
    >;
    expect(progress({ ...updated, lastUpdate })).toMatchObject({ kind: 'updated', withoutGrant: true });
  });

  it('has the times of its last update, where it had one', () => {
    expect(progress(updated)).toEqual({ kind: 'updated' });
    const lastUpdate = record('Succeeded') as NonNullable<MachineConfigNodeStatus['lastUpdate']>;
    expect(progress({ ...updated, lastUpdate })).toEqual({
      kind: 'updated',
      startedAt: Date.parse('2026-01-01T00:00:00Z'),
      since: Date.parse('2026-01-01T00:01:00Z'),
    });
  });

  it.each(['Standard', 'Layered', undefined] as const)('in mode %s', (mode) => {
    const isStandard = mode !== 'Layered';
    expect(progress({ ...updated, ...(mode && { mode }) }).kind).toBe(isStandard ? 'updated' : 'preparing');
    const layered = aMachineConfigNode('a', { configImage: { desiredImage: image('1') } }).spec;
    const status = { ...updated, configImage: { currentImage: image('1') }, ...(mode && { mode }) };
    expect(progressOf(layered, status).kind).toBe(mode === 'Standard' ? 'preparing' : 'updated');
  });

  it('that failed has the message, or else the reason', () => {
    const failed = (message: string, lastUpdate?: UpdateRecord) =>
      progress({
        conditions: [condition('NodeDegraded', 'True', message)],
        ...(lastUpdate && { lastUpdate: lastUpdate }),
      });
    const since = Date.parse(LONG_AGO);
    expect(failed('no space')).toEqual({ kind: 'degraded', why: 'no space', since });
    expect(failed('')).toEqual({ kind: 'degraded', why: 'NodeDegraded', since });
    expect(failed('x', record('Failed'))).toHaveProperty('ofAnother', undefined);
    expect(failed('x', record('Succeeded', { config: 'y' }))).toHaveProperty('ofAnother', undefined);
    expect(failed('x', record('Failed', { config: 'y' }))).toHaveProperty('ofAnother', true);
    expect(failed('x', record('Failed', { image: image('1') }))).toHaveProperty('ofAnother', true);
  });

  it('that stages needs what its daemon planned', () => {
    const plan = { config: CONFIG, staged: true, actions: [...REBOOT], causes: [], source: 'label' };
    expect(progress({ plan })).toEqual({ kind: 'staged', actions: REBOOT });
    expect(progress({ plan: { ...plan, image: image('1') } }).kind).toBe('preparing');
    expect(progress({ conditions: [condition('UpdatePrepared', 'True', 'x')] })).toEqual({
      kind: 'preparing',
    });
    expect(progress({ conditions: [condition('UpdatePrepared', 'False')] })).toEqual({ kind: 'preparing' });
  });
});

describe('what stands in the way of a node', () => {
  const flagged = (key: string, text: string, more: object = {}) =>
    aNode('a', { metadata: { name: 'a', annotations: { [key]: text } }, ...more });
  const since = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
  const holder = (node: Node) =>
    holdersOf({ node, lease: { by: 'nobody' }, inMaintenance: false }, NOW)[0]?.message;
  const planned = (text: string) => holder(flagged(annotations.plannedMaintenance, text));

  it.each([
    ['{}', 'flagged for maintenance'],
    ['not JSON', `flagged for maintenance (annotation ${annotations.plannedMaintenance})`],
    ['null', `flagged for maintenance (annotation ${annotations.plannedMaintenance})`],
    ['1', `flagged for maintenance (annotation ${annotations.plannedMaintenance})`],
    ['{"by":"ann"}', 'flagged for maintenance by ann'],
    ['{"by":1,"reason":"fan"}', 'flagged for maintenance: fan'],
    [`{"by":"ann","reason":"fan","until":"${since(1)}"}`, 'flagged for maintenance by ann: fan'],
    [`{"until":"${since(0)}"}`, undefined],
    [`{"until":"${since(-1)}"}`, undefined],
  ])('a planned maintenance %s', (text, expected) => {
    expect(planned(text)).toBe(expected);
  });

  it('may be the autoscaler, and no other taint', () => {
    const tainted = (...keys: string[]) =>
      aNode('a', { spec: { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) } });
    const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';
    expect(holder(tainted('other'))).toBeUndefined();
    expect(holder(tainted('other', TO_BE_DELETED))).toMatch(/autoscaler/);
  });

  it('may be its deletion, and that of its Machine before all else', () => {
    const metadata = { name: 'a', deletionTimestamp: LONG_AGO };
    expect(holder(aNode('a', { metadata }))).toBe('the node is being deleted');
    expect(read({ metadata }).claims.away).toEqual({
      kind: 'being-deleted',
      why: 'the node is being deleted',
    });
    const both = read({ metadata }, { machineDeleting: true, inMaintenance: true });
    expect(both.claims.holders[0]?.message).toBe('its Machine is being deleted');
    expect(both.claims.away).toEqual({ kind: 'being-deleted', why: 'its Machine is being deleted' });
    expect(read({}, { inMaintenance: true }).claims).toMatchObject({
      holders: [{ message: 'a NodeMaintenance is active' }],
      inMaintenance: true,
    });
  });

  it.each([
    ['after it was Ready last', 1, false],
    ['at the moment when it became Ready', 0, false],
    ['before it became Ready again', -1, true],
  ])('is a switch that was flagged %s', (_what, seconds, isBack) => {
    const ready = { ...condition('Ready'), lastTransitionTime: since(0) };
    const flag = JSON.stringify({ by: 'ann', since: since(seconds) });
    const node = flagged(annotations.poweredOff, flag, { status: { conditions: [ready] } });
    expect(holder(node)).toMatch(
      isBack
        ? /^it runs, but was switched off on request by ann; to have it updated: shale maintenance end /
        : /^switched off on request by ann$/,
    );
    // It is not away before it is down.
    expect(awayOf({ node })).toBeUndefined();
    const down = { conditions: [{ ...ready, status: 'False' as const }] };
    expect(awayOf({ node: { ...node, status: down } })).toEqual({
      kind: 'switched-off',
      why: 'switched off on request by ann',
    });
  });
});

import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import {
  aConfig,
  aDrivenPool,
  aMachine,
  aNodeAt,
  aWorkload,
  handedOverTo,
  MACHINE,
  OWN_CONFIG,
  OWNER,
  POOL,
  SETTINGS,
  someParts,
  streams,
} from '../../test/fixtures/capi/observed-machine.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { partKey } from '../mapping/machine-parts.ts';
import { machineConfigOf } from '../mapping/owned-config.ts';
import { machinePartsOf } from '../mapping/parts-of.ts';
import { type ClusterObservation, decideUpkeep } from './follow-owner.ts';

const before = someParts({ files: { '/etc/chrony.conf': 'pool a', '/etc/never-owned': 'x' } });
const after = someParts({ files: { '/etc/chrony.conf': 'pool b', '/etc/never-owned': 'y' } });
const chrony = new Set([partKey({ kind: 'file', path: '/etc/chrony.conf' })]);
const own = machineConfigOf(before, chrony, POOL) as MachineConfig;
const pool = aDrivenPool();
const admins = aConfig('00-admin', '/etc/admin.conf', 'a');

function observed(more: Partial<ClusterObservation> = {}, current = after): ClusterObservation {
  return {
    isPaused: false,
    settings: SETTINGS,
    owners: [{ owner: OWNER, isPaused: false, current }],
    machines: [aMachine()],
    unconfigured: [],
    workload: aWorkload({ objects: [pool, admins, own] }),
    ...more,
  };
}

const decide = (observation: ClusterObservation, held = false) => decideUpkeep(observation, () => held);

describe('the MachineConfig of an owner', () => {
  test('follows its template in the parts that it has', () => {
    const config = machineConfigOf(after, chrony, POOL);
    expect(decide(observed()).content).toEqual([{ kind: 'apply-config', config }]);
  });

  test('is left as it is where it says the same', () => {
    expect(decide(observed({}, before)).content).toEqual([]);
  });

  test('is not made before a change in place has touched something', () => {
    expect(decide(observed({ workload: aWorkload({ objects: [pool, admins] }) })).content).toEqual([]);
  });

  test('goes with the last part that the template has of it', () => {
    expect(decide(observed({}, someParts({}))).content).toEqual([
      { kind: 'delete-config', name: OWN_CONFIG },
    ]);
  });

  test.each<[string, Partial<ClusterObservation>]>([
    ['Cluster', { isPaused: true }],
    ['owner', { owners: [{ owner: OWNER, isPaused: true, current: after }] }],
  ])('is not written for a paused %s', (_, more) => {
    expect(decide(observed(more))).toMatchObject({ content: [], refused: [] });
  });

  test('is not written for an owner that two pools name', () => {
    const workload = aWorkload({
      objects: [pool, admins, own, aPool('infra', { shale: { drivenBy: OWNER } })],
    });
    const { content, refused } = decide(observed({ workload }));
    expect(content).toEqual([]);
    expect(refused).toEqual([{ owner: OWNER, why: expect.stringContaining('infra and worker name') }]);
  });

  test.each([
    [
      'the image',
      partKey({ kind: 'image' }),
      { imagePath: undefined, imageRepository: undefined },
      'imagePath',
    ],
    ['the keys of a user', partKey({ kind: 'keys', user: 'core' }), { nodeUser: 'admin' }, 'nodeUser'],
  ])('keeps %s whose setting somebody has changed', (_, part, changed, setting) => {
    const users = [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A a'] }];
    const infrastructure = { kind: 'DevMachine', spec: { image: 'v1' } };
    const objects = { machine: {}, bootstrap: { kind: 'KubeadmConfig', spec: { users } }, infrastructure };
    const has = machineConfigOf(machinePartsOf(objects, SETTINGS), new Set([part]), POOL) as MachineConfig;
    const settings = { ...SETTINGS, ...changed };
    const workload = aWorkload({ objects: [pool, admins, has] });
    const { content, refused } = decide(observed({ workload, settings }, machinePartsOf(objects, settings)));
    expect(content).toEqual([]);
    expect(refused).toEqual([{ owner: OWNER, why: expect.stringContaining(`setting ${setting} `) }]);
  });

  test('is not written where the pool could not be rendered with it, and nothing is refused without a change', () => {
    const infra = { ...pool, spec: { ...pool.spec, osImageStream: { name: 'none' } } };
    const workload = aWorkload({ objects: [infra, admins, own] });
    expect(decide(observed({ workload }))).toMatchObject({
      content: [],
      refused: [{ why: expect.stringContaining("can't be rendered") }],
    });
    expect(decide(observed({ workload }, before))).toMatchObject({ content: [], refused: [] });
  });
});

describe('the stream of a pool', () => {
  const named = streams('v1.34.2', 'v1.35.1');
  const of = (name: string | undefined, version: string) => {
    const streamed = aDrivenPool(name === undefined ? {} : { osImageStream: { name } });
    return decide(
      observed({ workload: aWorkload({ objects: [streamed, admins, named] }) }, someParts({ version })),
    );
  };

  test('follows the version, if it is one', () => {
    expect(of('v1.34.2', 'v1.35.1').content).toEqual([{ kind: 'set-stream', pool: POOL, stream: 'v1.35.1' }]);
    expect(of('v1.35.1', 'v1.35.1').content).toEqual([]);
  });

  test.each([undefined, 'stable'])('%s is the admin’s', (name) => {
    expect(of(name, 'v1.35.1').content).toEqual([]);
  });

  test('stays where the kubelet would be newer than the API server', () => {
    expect(of('v1.34.2', 'v1.36.0')).toMatchObject({ content: [], refused: [{ owner: OWNER }] });
  });
});

describe('a node that was handed over', () => {
  const node = aNodeAt('rendered-1', 'rendered-0', { annotated: handedOverTo() });
  const granted: MachineConfigNode = {
    ...node,
    spec: { ...node.spec, grant: { level: 'Disrupt', config: 'rendered-1', leaseHolder: 'shale-operator' } },
  };
  const at = (more: Partial<ClusterObservation>, machineConfigNode = node) => {
    const workload = aWorkload({ objects: [pool, admins, own], machineConfigNode });
    return decide(observed({ workload, ...more }), true);
  };
  const done = aMachine({ metadata: MACHINE });
  const paused = aMachine({ annotated: { 'cluster.x-k8s.io/paused': '' } });

  test.each<[string, Partial<ClusterObservation>, MachineConfigNode]>([
    ['while its Machine is being updated', {}, node],
    ['while it is being worked on, in a paused Cluster, too', { isPaused: true }, granted],
    ['while it is being worked on, of a paused Machine, too', { machines: [paused] }, granted],
  ])('keeps it %s', (_, more, machineConfigNode) => {
    expect(at(more, machineConfigNode)).toMatchObject({ takenBack: [], allowed: [] });
  });

  test.each<[string, Partial<ClusterObservation>, MachineConfigNode, readonly unknown[]]>([
    ['Machine is gone', { machines: [] }, node, []],
    ['Machine is updated', { machines: [done] }, node, [done]],
    ['Machine is paused', { machines: [paused] }, node, [paused]],
    ['Cluster is paused', { isPaused: true }, node, [aMachine()]],
    [
      'Machine is deleted',
      { machines: [aMachine({ metadata: { ...MACHINE, deletionTimestamp: 'now' } })] },
      granted,
      [expect.anything()],
    ],
    ['Machine has another node', { machines: [aMachine({ status: { nodeRef: { name: 'b' } } })] }, node, []],
    [
      'owner drives another pool',
      {},
      aNodeAt('rendered-1', 'rendered-0', { annotated: handedOverTo('MachineDeployment default/others') }),
      [],
    ],
    [
      'annotation can’t be read',
      {},
      aNodeAt('rendered-1', 'rendered-0', { annotated: { 'shale.dev/cluster-api-update': 'x' } }),
      [],
    ],
  ])('is taken back where its %s', (_, more, machineConfigNode, allowed) => {
    const upkeep = at(more, machineConfigNode);
    expect(upkeep.takenBack).toEqual([machineConfigNode]);
    expect(upkeep.allowed).toEqual(allowed);
  });

  test('is remediated by MachineHealthChecks again once nobody updates it', () => {
    const workload = aWorkload({ objects: [pool, admins, own], machineConfigNode: aNodeAt('rendered-1') });
    expect(decide(observed({ workload, machines: [done] }), true).allowed).toEqual([done]);
    expect(decide(observed({ workload, machines: [done] }), false).allowed).toEqual([]);
  });
});

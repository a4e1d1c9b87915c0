import { describe, expect, it } from 'vitest';
import { type MachineConfigNodeStatus, PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  condition,
  image,
  REBOOT,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation, type ObservationFields } from '../../test/fixtures/pool-observed.ts';
import * as assigned from './assign-targets.ts';
import { changesWith, readWithAssignment } from './assign-targets.ts';
import type { ObservedNode, PoolObservation } from './pool-observation.ts';
import type { PoolTarget } from './pool-target.ts';

const chooseAssignments = (seen: PoolObservation, limit: number) =>
  assigned.chooseAssignments(seen, limit, 0);
const missingMachineConfigNodes = (seen: PoolObservation) => assigned.missingMachineConfigNodes(seen, 0);
const OLD = 'rendered-worker-1';
const NEW = 'rendered-worker-2';
const STANDARD: PoolTarget = { kind: 'standard', target: { config: NEW } };
const LAYERED: PoolTarget = {
  kind: 'layered',
  target: { config: NEW, image: image('2') },
  build: 'b',
  sameContent: new Set([image('2')]),
};

interface NodeCase {
  readonly desired?: string;
  readonly desiredImage?: string;
  readonly status?: MachineConfigNodeStatus;
  readonly ready?: boolean;
}

function node(
  name: string,
  { desired = OLD, desiredImage, status, ready = true }: NodeCase = {},
): ObservedNode {
  const spec = {
    configVersion: { desired },
    ...(desiredImage === undefined ? {} : { configImage: { desiredImage } }),
  };
  return {
    node: aNode(name, { status: { conditions: [condition('Ready', ready ? 'True' : 'False')] } }),
    machineConfigNode: aMachineConfigNode(name, spec, status),
    lease: { by: 'nobody' },
    inMaintenance: false,
    machineDeleting: false,
  };
}

function observation(nodes: readonly ObservedNode[], more: ObservationFields = {}): PoolObservation {
  return anObservation({
    target: STANDARD,
    policyDigest: 'sha256:p',
    imageSigningKeys: 'sha256:k',
    nodes,
    ...more,
  });
}

const runs = (current: string, more: MachineConfigNodeStatus = {}) => ({
  configVersion: { current, desired: current },
  ...more,
});
const plan = (config: string, staged = true, planned?: string) => ({
  ...runs(OLD),
  plan: {
    config,
    staged,
    actions: [...REBOOT],
    causes: [],
    source: 'x',
    ...present({ image: planned }),
  },
});

const refused = (desired: string): MachineConfigNodeStatus => ({
  configVersion: { current: OLD, desired },
  conditions: [{ ...condition('UpdatePrepared', 'False', 'not here'), reason: PREPARE_REFUSED }],
});

describe('a node counts against the staging limit', () => {
  /** @returns whether a second node is given its target at once. */
  const isRoomBeside = (first: ObservedNode, target: PoolTarget = STANDARD) =>
    chooseAssignments(observation([first, node('b')], { target }), 1).get('b')?.target.config === NEW;

  it.each<[string, NodeCase, boolean]>([
    ['that was given the target and has reported nothing', { desired: NEW }, false],
    ['that runs another config and stages', { desired: NEW, status: runs(OLD) }, false],
    ['that has staged a part of it', { desired: NEW, status: plan(NEW, false) }, false],
    ['that has staged another config', { desired: NEW, status: plan('rendered-worker-9') }, false],
    ['that has staged it', { desired: NEW, status: plan(NEW) }, true],
    ['that runs it', { desired: NEW, status: runs(NEW) }, true],
    ['that refused it, as long as that lasts', { desired: NEW, status: refused(NEW) }, true],
    ['that refused another config', { desired: NEW, status: refused(OLD) }, false],
    ['that is not Ready', { desired: NEW, ready: false }, true],
    ['that is given it now', {}, false],
    ['that is not Ready and is given it now', { ready: false }, true],
  ])('%s: %j, room beside it: %s', (_what, given, room) => {
    expect(isRoomBeside(node('a', given))).toBe(room);
  });

  it.each<[string, NodeCase, boolean]>([
    ['that runs the config with another image', { status: runs(NEW) }, false],
    ['that has staged the config with another image', { status: plan(NEW, true, image('1')) }, false],
    ['that has staged the image', { status: plan(NEW, true, image('2')) }, true],
    ['that runs the image', { status: runs(NEW, { configImage: { currentImage: image('2') } }) }, true],
  ])('of a layered pool, %s', (_what, given, room) => {
    const first = node('a', { desired: NEW, desiredImage: image('2'), ...given });
    expect(isRoomBeside(first, LAYERED)).toBe(room);
  });
});

describe('a node that can not apply the target while it runs', () => {
  const WHY = 'disks can not change';
  const irreconcilable = { whyIrreconcilable: () => WHY };
  const granted = { level: 'Live', config: NEW, leaseHolder: 'shale-operator' } as const;

  it('has the target and the reason in one patch, and takes no room from others', () => {
    const nodes = [node('a'), node('b'), node('c')];
    const only = observation(nodes, {
      whyIrreconcilable: ({ running, target }) => (running === undefined && target === NEW ? WHY : undefined),
    });
    const assign = chooseAssignments(only, 0);
    expect([...assign.values()].map(({ target, irreconcilable: why }) => [target.config, why])).toEqual([
      [NEW, WHY],
      [NEW, WHY],
      [NEW, WHY],
    ]);
  });

  it('does not count as staging later either', () => {
    const first = node('a', { desired: NEW });
    const held = {
      ...first,
      machineConfigNode: aMachineConfigNode('a', { configVersion: { desired: NEW }, irreconcilable: WHY }),
    };
    const assign = chooseAssignments(observation([held, node('b')]), 1);
    expect(assign.get('b')?.target.config).toBe(NEW);
  });

  it('is compared by what it runs and by what its admin says of it', () => {
    const seen: unknown[] = [];
    const first = node('a', { status: runs(OLD) });
    const metadata = {
      ...first.node.metadata,
      annotations: { 'shale.dev/provisioned-config': 'rendered-x' },
    };
    const whyIrreconcilable: PoolObservation['rules']['whyIrreconcilable'] = (given) => void seen.push(given);
    chooseAssignments(
      observation([{ ...first, node: { ...first.node, metadata } }], { whyIrreconcilable }),
      9,
    );
    expect(seen).toContainEqual({ running: OLD, provisioned: 'rendered-x', target: NEW });
  });

  it('ends what it was granted, and begins nothing else', () => {
    const first = node('a', { desired: NEW });
    const spec = { configVersion: { desired: NEW }, grant: granted };
    const at = { ...first, machineConfigNode: aMachineConfigNode('a', spec) };
    expect(chooseAssignments(observation([at], irreconcilable), 9).get('a')?.irreconcilable).toBeUndefined();
    const moving = {
      ...at,
      machineConfigNode: aMachineConfigNode('a', { grant: { ...granted, config: 'rendered-worker-1' } }),
    };
    expect(chooseAssignments(observation([moving], irreconcilable), 9).get('a')?.irreconcilable).toBe(WHY);
  });

  it('is held back from its first config, too', () => {
    const bare = { ...node('new'), machineConfigNode: undefined };
    expect(missingMachineConfigNodes(observation([bare], irreconcilable))[0]?.spec.irreconcilable).toBe(WHY);
    expect(missingMachineConfigNodes(observation([bare]))[0]?.spec).not.toHaveProperty('irreconcilable');
  });

  it.each([undefined, { ...plan(NEW) }])('waits for its admin, whatever it has reported: %j', (status) => {
    const first = node('a', status === undefined ? { desired: NEW } : { desired: NEW, status });
    const seen = observation([first], irreconcilable);
    const [state] = readWithAssignment(seen, first, chooseAssignments(seen, 9), 0);
    expect(state?.update.progress).toEqual({ kind: 'preparing', why: WHY, stalled: 'refused' });
  });
});

describe('a target', () => {
  const assignedTo = (given: NodeCase, more: ObservationFields = {}) =>
    chooseAssignments(observation([node('a', given)], more), 9).get('a');

  it('comes with the pool, the policies and the way to reboot', () => {
    const settings = someSettings({ softReboot: true });
    expect(assignedTo({}, { settings })).toEqual({
      pool: 'worker',
      target: { config: NEW },
      policyDigest: 'sha256:p',
      imageSigningKeys: 'sha256:k',
      settings: { softReboot: true },
      irreconcilable: undefined,
    });
  });

  it.each<[string, ObservationFields]>([
    ['in a paused pool', { pool: aPool('worker', { paused: true }) }],
    ['while nodes are not managed', { settings: someSettings({ suspended: 'x' }) }],
    ['in a pool without a target', { target: { kind: 'none', why: '' } }],
  ])('stays as it is %s', (_what, more) => {
    expect(assignedTo({}, more)?.target).toEqual({ config: OLD });
  });

  describe('in a paused pool that stages ahead', () => {
    const paused = {
      pool: aPool('worker', { paused: true }),
      settings: someSettings({ prefetch: true }),
    };
    const granted = aMachineConfigNode('a', {
      configVersion: { desired: OLD },
      grant: { level: 'Disrupt', config: OLD, leaseHolder: 'shale-operator' },
    });
    const cordoned = aNode('a', { metadata: { name: 'a', annotations: { 'shale.dev/cordoned': 'true' } } });

    it.each<[string, ObservedNode, ObservationFields, string]>([
      ['comes to a node that nothing is under way on', node('a'), {}, NEW],
      ['waits for what was granted', { ...node('a'), machineConfigNode: granted }, {}, OLD],
      ['waits for a node that is cordoned', { ...node('a'), node: cordoned }, {}, OLD],
      [
        'stays as it is while nodes are not managed',
        node('a'),
        { settings: someSettings({ prefetch: true, suspended: 'x' }) },
        OLD,
      ],
    ])('%s', (_what, given, more, expected) => {
      const seen = observation([given], { ...paused, ...more });
      expect(chooseAssignments(seen, 9).get('a')?.target.config).toBe(expected);
    });

    it('takes room to stage like any other', () => {
      const seen = observation([node('a'), node('b')], paused);
      expect([...chooseAssignments(seen, 1).values()].map(({ target }) => target.config)).toEqual([NEW, OLD]);
    });
  });

  it('stays as it is without room to stage, and a node without a MachineConfigNode has none', () => {
    expect(chooseAssignments(observation([node('a')]), 0).get('a')?.target).toEqual({ config: OLD });
    const bare = { ...node('new'), machineConfigNode: undefined };
    expect(chooseAssignments(observation([bare]), 9).size).toBe(0);
  });
});

it('only nodes whose MachineConfigNode has to be written change', () => {
  const nodes = [node('a'), node('b', { desired: NEW }), { ...node('c'), machineConfigNode: undefined }];
  const assign = chooseAssignments(observation(nodes, { policyDigest: undefined }), 9);
  expect(nodes.flatMap((each) => changesWith(each, assign))).toEqual(['a', 'c']);
  expect(changesWith(node('d'), assign)).toEqual(['d']);
  const { labels: _, ...metadata } = aMachineConfigNode('b').metadata;
  const unlabelled = { ...aMachineConfigNode('b', { configVersion: { desired: NEW } }), metadata };
  expect(changesWith({ ...node('b'), machineConfigNode: unlabelled }, assign)).toEqual(['b']);
});

describe('a state', () => {
  const stateOf = (given: ObservedNode, more: ObservationFields = {}, limit = 9) => {
    const seen = observation([given], more);
    return readWithAssignment(seen, given, chooseAssignments(seen, limit), 0);
  };
  const updateOf = (...of: Parameters<typeof stateOf>) => stateOf(...of).map(({ update }) => update);

  it('is read as if the target was assigned already', () => {
    const staged = { assigned: true, progress: { kind: 'staged' } };
    expect(updateOf(node('a', { status: plan(NEW) }))).toMatchObject([staged]);
    expect(updateOf(node('a'), {}, 0)).toMatchObject([{ assigned: false }]);
    expect(updateOf(node('a'), { target: { kind: 'none', why: '' } })).toMatchObject([{ assigned: false }]);
  });

  it('is there only for a node with a MachineConfigNode and an assignment', () => {
    expect(stateOf({ ...node('a'), machineConfigNode: undefined })).toEqual([]);
    expect(readWithAssignment(observation([]), node('a'), new Map(), 0)).toEqual([]);
  });
});

describe('new MachineConfigNodes', () => {
  const bare = { ...node('new'), machineConfigNode: undefined };
  const specOf = (more: ObservationFields) =>
    missingMachineConfigNodes(observation([node('a'), bare], more))[0]?.spec;
  const shared = { node: { name: 'new' }, pool: { name: 'worker' }, configVersion: { desired: NEW } };

  it('are for nodes that have none, with the target of the pool', () => {
    expect(
      missingMachineConfigNodes(observation([node('a'), bare])).map((each) => each.node.metadata.name),
    ).toEqual(['new']);
    expect(specOf({ policyDigest: undefined })).toEqual(shared);
    expect(specOf({})).toEqual({ ...shared, policyDigest: 'sha256:p' });
    expect(specOf({ target: LAYERED, policyDigest: undefined })).toEqual({
      ...shared,
      configImage: { desiredImage: image('2') },
      imageSigningKeys: 'sha256:k',
    });
    const osImage = 'registry.test:5000/stock:1';
    const target: PoolTarget = { kind: 'standard', target: { config: NEW, osImage } };
    const settings = someSettings({ softReboot: true });
    expect(specOf({ target, settings, policyDigest: undefined })).toEqual({
      ...shared,
      osImage,
      softReboot: true,
    });
  });

  it('are none while the pool has no target', () => {
    expect(missingMachineConfigNodes(observation([bare], { target: { kind: 'none', why: '' } }))).toEqual([]);
  });
});

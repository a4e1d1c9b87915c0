import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MachineConfigNodeStatus, UpdateRecord } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aRecord,
  condition,
  image,
  LONG_AGO,
  REBOOT,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation } from '../../test/fixtures/pool-observed.ts';
import { inputs } from '../../test/fixtures/pool-status-inputs.ts';
import { defaultRolloutOptions } from '../options.ts';
import { decidePool, type PoolDecision } from './decide-pool.ts';
import type { ObservedNode } from './pool-observation.ts';
import { poolStatus } from './pool-status.ts';
import type { PoolTarget } from './pool-target.ts';
import { lastGood, workingTarget } from './rollback.ts';

/** A rack loses power after a target has failed: its nodes boot the target at once, and nobody granted it. */

const NOW = Date.parse('2026-06-01T00:00:00Z');
const former = { config: 'rendered-worker-1', image: image('1') };
const bad = { config: 'rendered-worker-2', image: image('2') };
const next = { config: 'rendered-worker-3', image: image('3') };
const layered = (target: typeof bad): PoolTarget => ({
  kind: 'layered',
  target,
  build: target.config,
  sameContent: new Set([target.image]),
});
const undone: PoolTarget = {
  kind: 'rolled-back',
  target: former,
  sameContent: new Set([former.image]),
  why: 'rolled back',
  ownTarget: layered(bad),
};

const updateTo = ({ config, image: to }: typeof bad, more: Partial<UpdateRecord>): UpdateRecord => ({
  config,
  image: to,
  actions: [...REBOOT],
  causes: [],
  source: 'x',
  startedAt: LONG_AGO,
  finishedAt: LONG_AGO,
  bootIDBefore: 'one',
  bootIDAfter: 'two',
  result: 'Succeeded',
  ...more,
});
const runs = ({ config, image: currentImage }: typeof bad): MachineConfigNodeStatus => ({
  configVersion: { current: config, desired: bad.config },
  configImage: { currentImage, desiredImage: bad.image },
  mode: 'Layered',
});
const reports = {
  /** The first node with a grant: rolled back, and Degraded. */
  failed: {
    ...runs(former),
    conditions: [condition('NodeDegraded', 'True', 'the check failed')],
    lastUpdate: updateTo(bad, { result: 'RolledBack', message: 'the check failed' }),
  },
  staged: {
    ...runs(former),
    conditions: [condition('UpdatePrepared')],
    plan: { ...bad, staged: true, actions: [...REBOOT], causes: [], source: 'x' },
  },
  /** Booted the bad target without a grant and passed the checks. */
  booted: {
    ...runs(bad),
    conditions: [condition('Updated')],
    lastUpdate: updateTo(bad, { withoutGrant: true }),
  },
} satisfies Record<string, MachineConfigNodeStatus>;

const specOf = ({ config, image: desiredImage }: typeof bad) => ({
  configVersion: { desired: config },
  configImage: { desiredImage },
});
const observed = (name: string, status: MachineConfigNodeStatus): ObservedNode => ({
  node: aNode(name),
  machineConfigNode: aMachineConfigNode(name, specOf(bad), status),
  lease: { by: 'nobody' },
  inMaintenance: false,
  machineDeleting: false,
});

/** @returns a rack of one node that failed, these, and some that have not come back from the loss of power. */
function rackOf(booted: number, staged: number, down = 0): readonly ObservedNode[] {
  const several = (count: number, name: string, status: MachineConfigNodeStatus) =>
    Array.from({ length: count }, (_, index) => observed(`${name}-${index}`, status));
  const notReady = { status: { conditions: [condition('Ready', 'False')] } };
  return [
    observed('failed', reports.failed),
    ...several(booted, 'booted', reports.booted),
    ...several(staged, 'staged', reports.staged),
    ...several(down, 'down', reports.staged).map((each) => ({
      ...each,
      node: aNode(each.node.metadata.name, notReady),
    })),
  ];
}

const poolWith = (maxUnavailable = 1) => ({
  ...aPool('worker', { maxUnavailable }),
  status: { configuration: { name: former.config } },
});
const record = aRecord(aPool('worker'), former, bad, next);

function lastGoodOf(nodes: readonly ObservedNode[], own: PoolTarget, pool: Parameters<typeof lastGood>[0]) {
  return lastGood(pool, own, {
    record,
    ran: nodes.map(({ machineConfigNode }) => workingTarget(machineConfigNode?.status)),
    isRenderingDue: false,
    isKept: () => true,
    images: {
      builds: [],
      policyDigest: 'sha256:p',
      unlisted: () => [],
      isRecorded: () => true,
      checkOf: () => undefined,
    },
    standardTarget: () => undefined,
  });
}

function decide(
  nodes: readonly ObservedNode[],
  { target = layered(bad), maxUnavailable = 1 }: { target?: PoolTarget; maxUnavailable?: number } = {},
): PoolDecision {
  const pool = poolWith(maxUnavailable);
  return decidePool(
    anObservation({
      pool,
      target,
      nodes,
      settings: someSettings({ autoRollback: true }),
      lastGood: () => lastGoodOf(nodes, target, pool),
    }),
    defaultRolloutOptions,
    NOW,
  );
}

const count = fc.integer({ min: 0, max: 12 });

it('the rollout stays stopped and says why, however many nodes booted the target', () => {
  fc.assert(
    fc.property(count, fc.integer({ min: 1, max: 12 }), count, (booted, staged, down) => {
      const nodes = rackOf(booted, staged, down);
      const decision = decide(nodes, { maxUnavailable: 20 });
      expect(decision.halted).toMatch(/^the rollout has stopped: 1 node failed .* threshold is 1: failed/);
      expect([...decision.steps]).toEqual([]);
      // A settled node counts as proof.
      expect(decision.newlySettled).toEqual([]);
      const status = poolStatus(
        inputs({ pool: poolWith(), target: layered(bad), decision, machineCount: nodes.length }),
        NOW,
      );
      expect(status.configuration).toEqual({ name: former.config });
      const degraded = status.conditions?.find(({ type }) => type === 'Degraded');
      expect(degraded).toMatchObject({ status: 'True', message: expect.stringContaining('has stopped') });
      expect(decision.rollbackTo).toEqual(former);
    }),
    { numRuns: 50 },
  );
});

it('a target that most nodes booted without a grant is nothing that a later rollout rolls back to', () => {
  const neverComplete = { status: {} };
  const booted = rackOf(8, 1);
  expect(lastGoodOf(booted, layered(next), neverComplete)).toBeUndefined();
  const before = rackOf(1, 8);
  expect(lastGoodOf(before, layered(next), neverComplete)).toEqual(former);
});

it('no more nodes roll back at a time than may be unavailable', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 12 }), fc.integer({ min: 1, max: 4 }), (booted, maxUnavailable) => {
      let nodes = rackOf(booted, 1).map((each) => assignFormer(each));
      for (let round = 0; round < 4 * booted; round += 1) {
        const { steps } = decide(nodes, { target: undone, maxUnavailable });
        nodes = nodes.map((each) => carryOut(each, steps));
        const disrupted = nodes.filter(({ node }) => node.spec?.unschedulable === true);
        expect(disrupted.length).toBeLessThanOrEqual(maxUnavailable);
        // One of those that roll back does, and the others are still at it.
        const first = disrupted.find(({ machineConfigNode: of }) => of?.spec.grant !== undefined);
        nodes = nodes.map((each) => (each === first ? rolledBack(each) : each));
      }
      const currentOf = ({ machineConfigNode }: ObservedNode) =>
        machineConfigNode?.status?.configImage?.currentImage;
      expect(new Set(nodes.map(currentOf))).toEqual(new Set([former.image]));
    }),
    { numRuns: 50 },
  );
});

/** The pool was rolled back: nodes that run the former target are done, and the others have staged it. */
function assignFormer(each: ObservedNode): ObservedNode {
  const name = each.node.metadata.name;
  const current = each.machineConfigNode?.status?.configImage?.currentImage;
  const plan = { ...former, staged: true, actions: [...REBOOT], causes: [], source: 'x' };
  const status: MachineConfigNodeStatus =
    current === former.image
      ? { ...runs(former), conditions: [condition('Updated')] }
      : { ...reports.booted, conditions: [condition('UpdatePrepared')], plan };
  return { ...each, machineConfigNode: aMachineConfigNode(name, specOf(former), status) };
}

/** Writes what a step writes. */
function carryOut(each: ObservedNode, steps: PoolDecision['steps']): ObservedNode {
  const name = each.node.metadata.name;
  const status = each.machineConfigNode?.status;
  const step = steps.get(name);
  switch (step?.kind) {
    case 'take': {
      const mark = { name, annotations: { [annotations.cordonedByShale]: 'true' } };
      return {
        ...each,
        lease: { by: 'us' },
        node: aNode(name, { metadata: mark, spec: { unschedulable: true } }),
      };
    }
    case 'drain': {
      const grant = { level: 'Disrupt', ...former, leaseHolder: 'shale-operator' } as const;
      return { ...each, machineConfigNode: aMachineConfigNode(name, { ...specOf(former), grant }, status) };
    }
    case 'finish':
      return {
        ...observed(name, reports.booted),
        machineConfigNode: aMachineConfigNode(name, specOf(former), status),
      };
    default:
      return each;
  }
}

/** @returns a node that was granted the former target and has booted it. */
function rolledBack(each: ObservedNode): ObservedNode {
  const { machineConfigNode: of } = each;
  if (of?.spec.grant === undefined) return each;
  const status = { ...runs(former), conditions: [condition('Updated')], lastUpdate: updateTo(former, {}) };
  return { ...each, machineConfigNode: { ...of, status } };
}

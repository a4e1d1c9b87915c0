import { describe, expect, it } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import { aMachineConfigNode, aNode, DRAIN, REBOOT, RESTART } from '../../test/fixtures/objects.ts';
import { decide, observed } from '../../test/fixtures/pool-decided.ts';
import type { PoolTarget } from '../pools/pool-target.ts';
import type { HoldState } from './hold.ts';

describe('a pool whose reboots a lock service coordinates', () => {
  const plan = { config: 'rendered-worker-2', staged: true, causes: [], source: 'x' };
  const staged = (name: string, actions: typeof REBOOT, node: Partial<Node> = {}) =>
    observed(name, {
      node: aNode(name, node),
      machineConfigNode: aMachineConfigNode(
        name,
        { configVersion: { desired: 'rendered-worker-2' } },
        { plan: { ...plan, actions: [...actions] } },
      ),
    });
  const decided = (
    state: HoldState,
    {
      node = staged('a', REBOOT),
      ...more
    }: { readonly node?: ReturnType<typeof staged>; readonly target?: PoolTarget } = {},
  ) => {
    const asked: string[] = [];
    const fleetLock = (name: string) => {
      asked.push(name);
      return state;
    };
    const { steps, startWaits } = decide([node], {}, {}, {}, { fleetLock, ...more });
    return { asked, steps: [...steps.values()].map(({ kind }) => kind), startWaits };
  };
  const full = { kind: 'holds', why: 'lock refuses one of group default: all taken' } as const;

  it('takes a node that has a slot', () => {
    expect(decided({ kind: 'clear' })).toEqual({ asked: ['a'], steps: ['take'], startWaits: [] });
  });

  it.each<[string, HoldState, readonly string[]]>([
    ['is asked', { kind: 'asking' }, []],
    [
      'is full',
      full,
      [
        'AwaitingRebootSlot: reboots wait for a slot of the lock service (spec.shale.fleetLock): lock refuses one of group default: all taken',
      ],
    ],
    [
      'is away',
      { kind: 'unknown', why: 'FleetLock lock:80: it did not answer in time' },
      [
        'RebootSlotUnknown: reboots wait for a slot of the lock service (spec.shale.fleetLock): it is unknown whether one is free: FleetLock lock:80: it did not answer in time',
      ],
    ],
  ])('takes none while the service %s, and says so', (_what, state, waits) => {
    const { steps, startWaits } = decided(state);
    expect(steps).toEqual([]);
    expect(startWaits.map(({ reason, message }) => `${reason}: ${message}`)).toEqual(waits);
  });

  it.each<[string, typeof REBOOT]>([
    ['drains alone', DRAIN],
    ['is live', RESTART],
  ])('asks nobody for an update that %s', (_what, actions) => {
    expect(decided(full, { node: staged('a', actions) })).toEqual({
      asked: [],
      steps: ['take'],
      startWaits: [],
    });
  });

  it('asks for a new node, too, and for a rollback', () => {
    const taints = [{ key: 'node.shale.dev/not-configured', effect: 'NoSchedule' }];
    expect(decided(full, { node: staged('a', REBOOT, { spec: { taints } }) }).steps).toEqual([]);
    const target: PoolTarget = {
      kind: 'rolled-back',
      target: { config: 'rendered-worker-2' },
      sameContent: new Set(),
      why: 'rolled back',
      ownTarget: { kind: 'standard', target: { config: 'rendered-worker-3' } },
    };
    expect(decided(full, { target: target }).steps).toEqual([]);
    expect(decided({ kind: 'clear' }, { target: target }).steps).toEqual(['take']);
  });
});

import { describe, expect, it, onTestFinished, test } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { FleetLockField, readFleetLockUrl } from '../../api/pool-settings/values.ts';
import { startLockService } from '../../test/fixtures/lock-service.ts';
import { aMachineConfigNode, aNode, condition, DRAIN, REBOOT, RESTART } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { decide, observed } from '../../test/fixtures/pool-decided.ts';
import type { PoolTarget } from '../pools/pool-target.ts';
import { fleetLockId } from './fleet-lock-id.ts';
import { needsSlot } from './fleet-lock-need.ts';
import { fleetLockServers } from './fleet-lock-server.ts';
import type { HoldState } from './monitored.ts';

describe('a base URL', () => {
  it.each([
    ['https://lock.example.com', 'https://lock.example.com'],
    [' http://10.3.0.15:3333/base/ ', 'http://10.3.0.15:3333/base'],
    ['HTTPS://Lock.example.com//', 'https://lock.example.com'],
  ])('%j is read', (text, url) => {
    expect(readFleetLockUrl(text)).toBe(url);
  });

  it.each(['', 'lock.example.com', 'file:///etc/shadow', 'http://u:secret@lock', 'http://lock/?secret=1'])(
    '%j is refused, and not repeated',
    (text) => {
      expect(() => readFleetLockUrl(text)).toThrow(/^(?!.*secret)/);
    },
  );
});

test.each<[string, boolean]>([
  ['workers', true],
  ['a.b-C9', true],
  ['', false],
  ['a b', false],
  ['a/b', false],
  ['ä', false],
])('whether %j is a group: %s', (group, isOne) => {
  expect(FleetLockField.safeParse({ url: 'https://lock', group }).success).toBe(isOne);
});

describe('a node is known by', () => {
  const of = (machineID?: string) =>
    fleetLockId(aNode('worker-1', { status: { nodeInfo: machineID === undefined ? {} : { machineID } } }));

  it('the ID that Zincati uses on it', () => {
    // As systemd-id128(1) prints it: machine-id --app-specific=de35106b6ec24688b63afddaa156679b
    expect(of('dfa03b0c2d8f4d3f8a2b1c4e5f607182')).toBe('b9b73f45b0514f439e59d5e53fc1ca8b');
    expect(of('DFA03B0C-2D8F-4D3F-8A2B-1C4E5F607182')).toBe(of('dfa03b0c2d8f4d3f8a2b1c4e5f607182'));
  });

  it.each([undefined, '', 'uninitialized'])('its name, where its kubelet reports the machine ID %j', (id) => {
    expect(of(id)).toBe('worker-1');
  });
});

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

describe('a node needs its slot', () => {
  const marked = { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } };
  const down = { conditions: [condition('Ready', 'False')] };
  const grant = { level: 'Disrupt', config: 'rendered-worker-1', leaseHolder: 'shale' } as const;
  const needs = (more: Partial<Parameters<typeof needsSlot>[0]>) =>
    needsSlot({
      node: aNode('a'),
      machineConfigNode: aMachineConfigNode('a'),
      lease: { by: 'nobody' },
      ...more,
    });

  it.each<[string, boolean, Partial<Parameters<typeof needsSlot>[0]>]>([
    ['while its lease is Shale’s', true, { lease: { by: 'us' } }],
    ['while it is granted a disruption', true, { machineConfigNode: aMachineConfigNode('a', { grant }) }],
    ['while it is down after its reboot', true, { node: aNode('a', { metadata: marked, status: down }) }],
    ['not once it is untouched', false, {}],
    ['not once it is Ready, under a cordon that stays', false, { node: aNode('a', { metadata: marked }) }],
    ['not while it is down for another reason', false, { node: aNode('a', { status: down }) }],
    ['not once it is deleted', false, { node: undefined, lease: { by: 'us' } }],
    [
      'not once it is powered off on request',
      false,
      {
        node: aNode('a', {
          metadata: { name: 'a', annotations: { ...marked.annotations, [annotations.poweredOff]: '{}' } },
          status: down,
        }),
      },
    ],
  ])('%s', (_what, expected, more) => {
    expect(needs(more)).toBe(expected);
  });
});

describe('a lock service', () => {
  const start = async () => {
    const service = await startLockService(1);
    onTestFinished(() => service.stop());
    const servers = fleetLockServers([service.url], {});
    const slot = (id: string) => ({ url: service.url, group: 'workers', id });
    return { service, servers, slot };
  };

  it.each([
    ['poseidon/fleetlock', 'reboot lease lock unavailable, held by another node'],
    ['airlock', 'all slots are locked already'],
  ] as const)(
    'such as %s gives a slot, again to who has it, and to another once it is given back',
    async (name, why) => {
      const { service, servers, slot } = await start();
      service.as = name;
      const within = deadline(10_000);
      expect(await servers.take(slot('a'), within)).toEqual({ kind: 'clear' });
      expect(await servers.take(slot('a'), within)).toEqual({ kind: 'clear' });
      expect(await servers.take(slot('b'), within)).toEqual({
        kind: 'holds',
        why: `${new URL(service.url).host} refuses one of group workers: ${why}`,
      });
      // It was asked for one, and has none to give back.
      await servers.giveBack(slot('b'), within);
      expect(service.held.get('workers')).toEqual(new Set(['a']));
      await servers.giveBack(slot('a'), within);
      expect(await servers.take(slot('b'), within)).toEqual({ kind: 'clear' });
      expect(service.asked.at(-1)).toBe('pre-reboot workers b');
    },
  );

  it.each([500, 404] as const)(
    'that answers %s has given nothing, and taken nothing back',
    async (status) => {
      const { service, servers, slot } = await start();
      service.answers = status;
      const why = new RegExp(`^FleetLock 127\\.0\\.0\\.1:\\d+: it answers ${status}: ""$`);
      await expect(servers.take(slot('a'), deadline(10_000))).rejects.toThrow(why);
      await expect(servers.giveBack(slot('a'), deadline(10_000))).rejects.toThrow(why);
    },
  );

  it('that nobody allowed is sent nothing', async () => {
    const { service, slot } = await start();
    const servers = fleetLockServers(['http://lock.example.com'], {});
    const why = `the operator has no --fleetlock-url ${service.url}`;
    await expect(servers.take(slot('a'), deadline(10_000))).rejects.toThrow(why);
    await expect(servers.giveBack(slot('a'), deadline(10_000))).rejects.toThrow(why);
    expect(service.asked).toEqual([]);
  });
});

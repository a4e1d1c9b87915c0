import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aMachineConfigNode } from '../test/fixtures/objects.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { NodeChannel } from './node-channel.ts';

const channel = () =>
  new NodeChannel({ client: {} as ApiClient, nodeName: 'worker-1', log: pino({ level: 'silent' }) });
const FOREVER = 3_600_000;

describe('waiting for a reason to look again', () => {
  test('ends with one that comes, each time', async () => {
    const waits = channel();
    for (let round = 0; round < 3; round += 1) {
      const { changes } = waits;
      const waiting = waits.changedSince(changes, FOREVER, deadline(10_000));
      waits.lookAgain();
      await waiting;
      expect(waits.changes).toBe(changes + 1);
    }
  });

  test('does not begin where one has come since', async () => {
    const waits = channel();
    const { changes } = waits;
    waits.lookAgain();
    await waits.changedSince(changes, FOREVER, deadline(10_000));
  });

  test('goes on after one that was seen already', async () => {
    const waits = channel();
    waits.lookAgain();
    const waiting = waits.changedSince(waits.changes, FOREVER, deadline(10_000)).then(() => 'over');
    const first = await Promise.race([waiting, new Promise((go) => setImmediate(() => go('waiting')))]);
    expect(first).toBe('waiting');
    waits.lookAgain();
    expect(await waiting).toBe('over');
  });

  test('ends with its time, and with the daemon', async () => {
    const waits = channel();
    await waits.changedSince(waits.changes, 1, deadline(10_000));
    const ending = new AbortController();
    const waiting = waits.changedSince(waits.changes, FOREVER, ending.signal);
    ending.abort();
    await waiting;
    await waits.changedSince(waits.changes, FOREVER, ending.signal);
  });
});

test('nothing is written while there is no object', async () => {
  await channel().publishTrouble('DaemonFailed', 'x', deadline(10_000));
  expect(channel().object).toBeUndefined();
});

describe('a reason to look again', () => {
  const spec = { configVersion: { desired: 'rendered-1' } };
  const repair = { 'shale.dev/repair': '{"id":"r-1"}' };
  const retry = { 'shale.dev/retry': '{"config":"rendered-1","failedAt":"x"}' };
  const object = aMachineConfigNode('worker-1', spec, {});
  const withAnnotations = (annotations: Readonly<Record<string, string>>) => ({
    ...object,
    metadata: { ...object.metadata, annotations },
  });
  test.each<[string, (cluster: WatchedCluster) => void, boolean]>([
    [
      'another spec',
      (cluster) =>
        cluster.put(
          MachineConfigNodes,
          aMachineConfigNode('worker-1', { configVersion: { desired: 'rendered-2' } }, {}),
        ),
      true,
    ],
    [
      'a repair that is requested',
      (cluster) => cluster.put(MachineConfigNodes, withAnnotations(repair)),
      true,
    ],
    [
      'a reboot that is requested',
      (cluster) => cluster.put(MachineConfigNodes, withAnnotations({ 'shale.dev/reboot': '{"bootID":"x"}' })),
      true,
    ],
    ['a retry that is requested', (cluster) => cluster.put(MachineConfigNodes, withAnnotations(retry)), true],
    ['its deletion', (cluster) => cluster.remove(MachineConfigNodes, 'worker-1'), true],
    [
      'another annotation, as another status,',
      (cluster) => cluster.put(MachineConfigNodes, withAnnotations({ other: 'x' })),
      false,
    ],
  ])('%s', async (_what, change, isReason) => {
    const cluster = new WatchedCluster();
    cluster.put(MachineConfigNodes, object);
    const known = new NodeChannel({
      client: cluster.watchingClient(),
      nodeName: 'worker-1',
      log: pino({ level: 'silent' }),
    });
    const stop = new AbortController();
    const running = known.run(stop.signal);
    await known.synced();
    const [before, changes] = [known.object, known.changes];
    change(cluster);
    await vi.waitFor(() => expect(known.object).not.toBe(before), { timeout: patience(5_000), interval: 1 });
    expect(known.changes - changes).toBe(isReason ? 1 : 0);
    stop.abort();
    await running;
  });
});

describe('the answer to a write that comes after the watch has shown what was written next', () => {
  /** @param next what somebody else writes. @returns the object as the channel then knows it. */
  async function objectAfter(
    next: (cluster: WatchedCluster) => void,
    isShown: (channel: NodeChannel) => boolean,
  ) {
    const cluster = new WatchedCluster();
    cluster.put(MachineConfigNodes, aMachineConfigNode('worker-1', {}, {}));
    const client = cluster.watchingClient();
    const slow: ApiClient = {
      ...client,
      replaceStatus: async (kind, object, options) => {
        const answer = await client.replaceStatus(kind, object, options);
        next(cluster);
        await vi.waitFor(() => expect(isShown(known)).toBe(true), { timeout: patience(5_000), interval: 1 });
        return answer;
      },
    };
    const known = new NodeChannel({ client: slow, nodeName: 'worker-1', log: pino({ level: 'silent' }) });
    const stop = new AbortController();
    const running = known.run(stop.signal);
    await known.synced();
    await known.publishTrouble('DaemonFailed', 'x', deadline(10_000));
    stop.abort();
    await running;
    return known.object;
  }

  test('does not bring back an earlier spec', async () => {
    const spec = { configVersion: { desired: 'rendered-next' } };
    const object = await objectAfter(
      (cluster) => cluster.put(MachineConfigNodes, aMachineConfigNode('worker-1', spec, {})),
      ({ object: shown }) => shown?.spec.configVersion.desired === 'rendered-next',
    );
    expect(object?.spec.configVersion.desired).toBe('rendered-next');
  });

  test('does not bring back what was deleted', async () => {
    const object = await objectAfter(
      (cluster) => cluster.remove(MachineConfigNodes, 'worker-1'),
      ({ object: shown }) => shown === undefined,
    );
    expect(object).toBeUndefined();
  });

  test('is what is known otherwise', async () => {
    const object = await objectAfter(
      () => undefined,
      () => true,
    );
    expect(object?.status?.conditions).toMatchObject([{ reason: 'DaemonFailed' }, {}, {}, {}]);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { triedConfig } from '../../machineconfig/tried-config.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';

const signal = new AbortController().signal;
const START = Date.parse('2026-06-01T00:00:00Z');
const TERMS = { id: 'a', by: 'alice', at: '2026-06-01T00:00:00Z', until: '2026-06-01T00:10:00Z' };

let cluster: MemoryCluster;
let operator: SteppedOperator;
let now: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = START;
  operator = steppedOperator(cluster, () => now);
});

const config = (argument: string, generation: number): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '99-a', generation, labels: { role: 'worker' } },
  spec: { kernelArguments: [argument] },
});

/** @returns what was there before. */
function putTried(before: MachineConfig | undefined): MachineConfig | undefined {
  const tried = triedConfig(before, config('b', 1), TERMS);
  const generation = before === undefined ? 1 : 2;
  cluster.put(MachineConfigs, { ...tried, metadata: { ...tried.metadata, generation } });
  return before;
}

async function look() {
  operator.catchUp();
  const result = await operator.tries.reconcile('99-a', signal);
  operator.catchUp();
  return result;
}
const current = () => cluster.get(MachineConfigs, '99-a');

it('waits for the end, and looks at the clock each minute', async () => {
  putTried(config('a', 1));
  expect(await look()).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
  now = START + 599_000;
  expect(await look()).toMatchObject({ kind: 'requeue', afterMs: 1_000 });
  expect(current()?.spec.kernelArguments).toEqual(['b']);
});

describe('at the end', () => {
  beforeEach(() => {
    now = START + 600_000;
  });

  it('restores what was before, once', async () => {
    const before = putTried(config('a', 1));
    await look();
    expect(current()).toMatchObject({ spec: before?.spec, metadata: { labels: { role: 'worker' } } });
    expect(current()?.metadata.annotations).toBeUndefined();
    const { writes } = cluster;
    await look();
    expect(cluster.writes).toBe(writes);
    const message =
      'Restored what it was before the change of alice that was to be confirmed until 2026-06-01T00:10:00Z';
    expect(operator.events).toEqual([['Normal', '99-a', 'ChangeUndone', message]]);
  });

  it('deletes what did not exist', async () => {
    putTried(undefined);
    await look();
    expect(current()).toBeUndefined();
    await look();
    expect(operator.events.map(([, , reason]) => reason)).toEqual(['ChangeUndone']);
  });

  it('keeps what somebody edited, says so, and is done with it', async () => {
    putTried(config('a', 1));
    const tried = current();
    if (tried === undefined) throw new Error('nothing is tried');
    cluster.put(MachineConfigs, { ...tried, metadata: { ...tried.metadata, generation: 3 } });
    await look();
    expect(current()?.spec.kernelArguments).toEqual(['b']);
    expect(current()?.metadata.annotations?.[annotations.try]).toBeUndefined();
    await look();
    expect(operator.events).toEqual([
      [
        'Warning',
        '99-a',
        'ChangeKept',
        expect.stringMatching(/ is not undone, because somebody has edited its spec since$/),
      ],
    ]);
  });

  it.each([['restores', config('a', 1)] as const, ['deletes', undefined] as const])(
    '%s nothing that is confirmed at that moment',
    async (_what, before) => {
      putTried(before);
      operator.catchUp();
      const tried = current();
      if (tried === undefined) throw new Error('nothing is tried');
      const { annotations: _annotations, ...confirmed } = tried.metadata;
      cluster.put(MachineConfigs, { ...tried, metadata: confirmed });
      await expect(operator.tries.reconcile('99-a', signal)).rejects.toThrow();
      await look();
      expect(current()?.spec.kernelArguments).toEqual(['b']);
      expect(operator.events).toEqual([]);
    },
  );
});

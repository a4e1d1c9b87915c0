import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { runningTries } from './running-tries.ts';

function tried(name: string, text: string): MachineConfigPool {
  const pool = aPool(name);
  return { ...pool, metadata: { ...pool.metadata, annotations: { [annotations.rollbackDeadline]: text } } };
}
const until = (time: string) => JSON.stringify({ id: 'a', until: time });

test.each<[string, readonly MachineConfigPool[], string | undefined]>([
  ['none', [aPool('worker')], undefined],
  ['one that can not be read', [tried('worker', '{')], undefined],
  [
    'one',
    [aPool('infra'), tried('worker', until('2026-06-01T00:10:00Z'))],
    'a change of pool worker (until 2026-06-01T00:10:00Z) is being tried, and only the operator rolls it back: run shale try confirm to keep it, or shale try cancel to undo it now, and wait until the pools are Updated (shale status --wait)',
  ],
  [
    'several, also one that is overdue',
    [tried('worker', until('2026-06-01T00:10:00Z')), tried('infra', until('2020-06-01T00:10:00Z'))],
    'a change of pools infra (until 2020-06-01T00:10:00Z), worker (until 2026-06-01T00:10:00Z) is being tried, and only the operator rolls them back: run shale try confirm to keep it, or shale try cancel to undo it now, and wait until the pools are Updated (shale status --wait)',
  ],
])('%s', (_what, pools, why) => {
  expect(runningTries(pools)).toBe(why);
});

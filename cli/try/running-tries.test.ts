import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { triedConfig } from '../../machineconfig/tried-config.ts';
import { runningTries } from './running-tries.ts';

const config = (name: string, set: Readonly<Record<string, string>> = {}): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name, annotations: set },
  spec: {},
});
const tried = (name: string, until: string) =>
  triedConfig(undefined, config(name), { id: 'a', by: 'alice', at: '', until });

test.each<[string, readonly MachineConfig[], string | undefined]>([
  ['none', [config('99-a')], undefined],
  ['one that can not be read', [config('99-a', { [annotations.try]: '{' })], undefined],
  [
    'one',
    [config('99-a'), tried('99-b', '2026-06-01T00:10:00Z')],
    'MachineConfig 99-b (until 2026-06-01T00:10:00Z) is being tried, and only the operator undoes it: run shale try confirm to keep it, or shale try cancel to undo it now, and wait until the pools are Updated (shale status --wait)',
  ],
  [
    'several, also one that is overdue',
    [tried('99-b', '2026-06-01T00:10:00Z'), tried('99-a', '2020-06-01T00:10:00Z')],
    'MachineConfigs 99-a (until 2020-06-01T00:10:00Z), 99-b (until 2026-06-01T00:10:00Z) are being tried, and only the operator undoes them: run shale try confirm to keep them, or shale try cancel to undo them now, and wait until the pools are Updated (shale status --wait)',
  ],
])('%s', (_what, configs, why) => {
  expect(runningTries(configs)).toBe(why);
});

import { expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { configVersions } from './config-versions.ts';

const pool = aPool('worker');
const config = (name: string, resourceVersion: string, more: Partial<MachineConfig['metadata']> = {}) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: {
    name,
    resourceVersion,
    uid: '1',
    labels: pool.spec.machineConfigSelector?.matchLabels ?? {},
    ...more,
  },
  spec: {},
});
const before = configVersions(pool, [config('a', '1'), config('b', '2')]);

test.each<[string, readonly MachineConfig[], boolean]>([
  ['the same in another order', [config('b', '2'), config('a', '1')], true],
  ['another version', [config('a', '1'), config('b', '3')], false],
  ['an object that was created again', [config('a', '1'), config('b', '2', { uid: '2' })], false],
  ['one less', [config('a', '1')], false],
  ['one more', [config('a', '1'), config('b', '2'), config('c', '3')], false],
  [
    'one more that the pool does not select',
    [config('a', '1'), config('b', '2'), config('c', '3', { labels: {} })],
    true,
  ],
  [
    'one more that the operator generated',
    [
      config('a', '1'),
      config('b', '2'),
      config('c', '3', { annotations: { [annotations.generatedByController]: '1' } }),
    ],
    true,
  ],
])('%s', (_what, configs, isSame) => {
  expect(configVersions(pool, configs) === before).toBe(isSame);
});

import { expect, it, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, labels } from '../../api/names.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { decideTry, unconfirmedOf } from './decide-try.ts';

const UNTIL = '2026-06-01T00:10:00Z';
const of = (
  role: string,
  argument: string,
  metadata: Partial<MachineConfig['metadata']> = {},
): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '99-a', labels: { [labels.role]: role }, ...metadata },
  spec: { kernelArguments: [argument] },
});
function pool(name: string, set: Readonly<Record<string, string>> = {}, paused = false): MachineConfigPool {
  const made = aPool(name, { paused });
  return { ...made, metadata: { ...made.metadata, annotations: set } };
}
const deadline = (text: string) => ({ [annotations.rollbackDeadline]: text });
const WORKER = pool('worker');
const WANTED = of('worker', 'b');

test.each<[string, readonly MachineConfig[], readonly MachineConfigPool[], object]>([
  [
    'a new one',
    [],
    [WORKER, pool('infra')],
    { changes: [{ after: WANTED }], unchanged: [], pools: ['worker'] },
  ],
  [
    'a changed one, which keeps the annotations of others and its version',
    [of('worker', 'a', { resourceVersion: '7', annotations: { owner: 'net' } })],
    [WORKER],
    {
      changes: [
        {
          before: { spec: { kernelArguments: ['a'] } },
          after: { metadata: { resourceVersion: '7', annotations: { owner: 'net' } }, spec: WANTED.spec },
        },
      ],
      pools: ['worker'],
    },
  ],
  [
    'one that moves from pool to pool: both are rolled back',
    [of('infra', 'a')],
    [WORKER, pool('infra'), pool('other')],
    { pools: ['worker', 'infra'] },
  ],
  ['what is so already', [of('worker', 'b')], [WORKER], { changes: [], unchanged: ['99-a'], pools: [] }],
  [
    'what is so already, in a pool in which something else is tried',
    [of('worker', 'b')],
    [pool('worker', deadline('{'))],
    { changes: [], unchanged: ['99-a'] },
  ],
])('%s', (_what, configs, pools, expected) => {
  const decided = decideTry([WANTED], configs, pools);
  if (typeof decided === 'string') throw new Error(decided);
  const names = decided.pools.map(({ metadata }) => metadata.name);
  expect({ ...decided, pools: names }).toMatchObject(expected);
});

test.each<[string, readonly MachineConfig[], readonly MachineConfigPool[], string]>([
  [
    'while one is tried',
    [],
    [pool('worker', deadline(JSON.stringify({ id: 'a', until: UNTIL, by: 'alice' })))],
    `pool worker: a change of alice is being tried until ${UNTIL}; confirm or cancel it first`,
  ],
  [
    'while one of nobody is tried',
    [],
    [pool('worker', deadline(JSON.stringify({ id: 'a', until: UNTIL })))],
    `pool worker: a change is being tried until ${UNTIL}; confirm or cancel it first`,
  ],
  [
    'under a deadline that can not be read',
    [],
    [pool('worker', deadline('soon'))],
    `pool worker: its annotation ${annotations.rollbackDeadline} can't be read; remove it first`,
  ],
  [
    'in a paused pool',
    [],
    [pool('worker', {}, true)],
    'pool worker is paused, so its nodes would neither apply the change nor roll back; resume it first',
  ],
  [
    'of no pool',
    [],
    [pool('infra')],
    'MachineConfig 99-a: no pool selects it, so there is nothing to roll back',
  ],
  [
    'that a controller generates',
    [of('worker', 'a', { annotations: { [annotations.generatedByController]: 'x' } })],
    [WORKER],
    'MachineConfig 99-a: a controller generates it; change what it is generated from',
  ],
])('nothing is tried %s', (_what, configs, pools, why) => {
  expect(decideTry([WANTED], configs, pools)).toBe(why);
});

it.each<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ['{', undefined],
  ['{"config":"c"}', undefined],
  ['{"config":"c","unconfirmed":"a"}', 'a'],
])('a rollback %j is that of a try %j', (text, id) => {
  const set = text === undefined ? {} : { [annotations.rollback]: text };
  expect(unconfirmedOf(pool('worker', set))).toBe(id);
});

import { expect, test } from 'vitest';
import { daemonVersions, formatVersions, skewWarnings, type Versions } from './version-skew.ts';

const at = (version: string | undefined) => ({ state: 'running', version }) as const;
const same: Versions = {
  client: '0.2.0',
  operator: at('0.2.0'),
  builder: at('0.2.0'),
  daemons: [{ version: '0.2.0', nodes: ['a', 'b'] }],
};

test.each<[string, Partial<Versions>]>([
  ['one version everywhere', {}],
  ['a command of the next minor version', { client: '0.3.4' }],
  ['a command of the minor version before', { client: '0.1.0' }],
  ['no operator', { operator: { state: 'absent' }, client: '0.9.0' }],
  ['an operator that reports no version', { operator: at(undefined), client: '0.9.0' }],
  ['a builder that is not running', { builder: { state: 'absent' } }],
  ['a version that is no number', { client: 'main' }],
])('no skew: %s', (_name, more) => {
  expect(skewWarnings({ ...same, ...more })).toEqual([]);
});

test.each<[Partial<Versions>, string]>([
  [
    { client: '0.4.0' },
    "this command has version 0.4.0 and the operator 0.2.0, which is not supported: use a command of the operator's version",
  ],
  [
    { client: '1.2.0' },
    "this command has version 1.2.0 and the operator 0.2.0, which is not supported: use a command of the operator's version",
  ],
  [
    { builder: at('0.1.0') },
    'the Machine OS Builder has version 0.1.0 and the operator 0.2.0: the operator replaces the builder',
  ],
  [
    { daemons: [{ version: '0.1.0', nodes: ['a'] }] },
    'the daemon of a has version 0.1.0 and the operator 0.2.0: kubectl -n shale-system rollout status daemonset/shale-daemon shows the progress',
  ],
  [
    { daemons: [{ version: '0.0.9', nodes: ['a', 'b', 'c', 'd', 'e', 'f'] }], operator: at('0.2.1') },
    'the daemons of a, b, c, d, e and 1 more node have version 0.0.9 and the operator 0.2.1, which is not supported: kubectl -n shale-system rollout status daemonset/shale-daemon shows the progress',
  ],
  [
    { daemons: [{ version: undefined, nodes: ['a', 'b'] }] },
    'the daemons of a, b report no version: kubectl -n shale-system rollout status daemonset/shale-daemon shows the progress',
  ],
])('skew: %j', (more, warning) => {
  expect(skewWarnings({ ...same, ...more })).toEqual(
    more.operator === undefined ? [warning] : [expect.stringContaining('Machine OS Builder'), warning],
  );
});

test('nodes are grouped by the version of their daemons', () => {
  const nodes = [
    { name: 'c', version: '0.2.0' },
    { name: 'b', version: undefined },
    { name: 'a', version: '0.2.0' },
  ];
  expect(daemonVersions(nodes)).toEqual([
    { version: undefined, nodes: ['b'] },
    { version: '0.2.0', nodes: ['a', 'c'] },
  ]);
});

test('a line for each part', () => {
  expect(formatVersions({ ...same, builder: { state: 'absent' } }).split('\n')).toEqual([
    'client    0.2.0',
    'operator  0.2.0',
    'builder   not running',
    'daemons   0.2.0 (2 nodes)',
  ]);
  expect(formatVersions({ ...same, operator: at(undefined), daemons: [] })).toMatch(
    /operator {2}unknown\n.*\ndaemons {3}none$/,
  );
});

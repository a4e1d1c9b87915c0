import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import { formatPrediction, mayDisrupt } from '../cli/history/rollback-text.ts';
import { effectivePolicies } from '../disruption/effective-policies.ts';
import { aBuild, aMachineConfigNode, aSuccess, image } from '../test/fixtures/objects.ts';
import { predictRollback, type RollbackPredictionInput } from './rollback-prediction.ts';

const restart = { type: 'Restart', restart: { serviceName: 'chronyd.service' } } as const;
const policies = effectivePolicies(
  {
    files: [
      { path: '/etc/chrony.conf', actions: [restart] },
      { path: '/etc/crio.conf', actions: [{ type: 'Drain' }, restart] },
      { path: '/etc/motd', actions: [{ type: 'None' }] },
    ],
  },
  { containerRuntimeUnit: 'crio.service' },
);

function config(name: string, ...paths: readonly string[]): MachineConfig {
  const files = paths.map((path) => ({ path, contents: { source: 'data:,x' } }));
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.5.0' }, storage: { files } } },
  };
}

/** What a status differs in from that of a layered node; undefined: it has no such field. */
type StatusPart = {
  readonly [Field in keyof MachineConfigNodeStatus]?: MachineConfigNodeStatus[Field] | undefined;
};

function node(name: string, current: string, more: StatusPart = {}): MachineConfigNode {
  const status = {
    mode: 'Layered',
    baseImage: 'base',
    configVersion: { current, desired: current },
    configImage: { currentImage: image('2') },
    ...more,
  };
  const spec = status.mode === 'Layered' ? { configImage: { desiredImage: image('2') } } : {};
  return aMachineConfigNode(name, spec, status as MachineConfigNodeStatus);
}

const first = aBuild('first', 'rendered-1', { status: aSuccess('1') });
const input: RollbackPredictionInput = {
  config: 'rendered-1',
  build: first,
  nodes: [],
  machineConfigs: [
    config('rendered-1'),
    config('rendered-chrony', '/etc/chrony.conf'),
    config('rendered-crio', '/etc/crio.conf'),
    config('rendered-motd', '/etc/motd'),
    config('rendered-fstab', '/etc/fstab'),
    { ...config('rendered-broken'), spec: { config: { ignition: { version: '99.0.0' } } } },
  ],
  policies,
};
const standard = { ...input, build: undefined };
const bare = { mode: 'Standard', configImage: undefined } as const;

describe('a node that is rolled back', () => {
  test.each<[string, RollbackPredictionInput, MachineConfigNode, string]>([
    [
      'that a restart took there',
      input,
      node('a', 'rendered-chrony'),
      'without a reboot (Restart(chronyd.service))',
    ],
    [
      'that was drained',
      input,
      node('a', 'rendered-crio'),
      'without a reboot, drained (Drain, Restart(chronyd.service))',
    ],
    ['that nothing had to be done on', input, node('a', 'rendered-motd'), 'without a reboot (None)'],
    ['that a reboot took there', input, node('a', 'rendered-fstab'), 'by a reboot (/etc/fstab)'],
    [
      'on another base image',
      input,
      node('a', 'rendered-motd', { baseImage: 'b' }),
      'by a reboot (another base image)',
    ],
    [
      'in standard mode',
      input,
      node('a', 'rendered-motd', bare),
      'by a reboot (the node switches from standard to layered mode, and its image has rendered-1 instead of rendered-motd)',
    ],
    [
      'that runs the image',
      input,
      node('a', 'rendered-1', { configImage: { currentImage: image('1') } }),
      'with nothing to do',
    ],
    [
      'that runs the image under another label',
      input,
      node('a', 'rendered-1', { configImage: { currentImage: image('3') } }),
      'with nothing to do',
    ],
    [
      'that reports nothing',
      input,
      aMachineConfigNode('a'),
      'by a reboot (it has not reported what it runs)',
    ],
    [
      'whose config is gone',
      input,
      node('a', 'rendered-gone'),
      "by a reboot (its rendered config rendered-gone does not exist or can't be read)",
    ],
    [
      'to a config that can not be read',
      { ...input, config: 'rendered-broken' },
      node('a', 'rendered-motd'),
      "by a reboot (rendered config rendered-broken does not exist or can't be read)",
    ],
    ['by the configs alone', standard, node('a', 'rendered-motd', bare), 'without a reboot (None)'],
    ['to what it runs', standard, node('a', 'rendered-1', bare), 'with nothing to do'],
    ['to standard mode', standard, node('a', 'rendered-motd'), 'by a reboot (it returns to the stock image)'],
  ])('%s', (_what, given, one, what) => {
    expect(predictRollback({ ...given, nodes: [one] })).toEqual([
      {
        what,
        nodes: ['a'],
        waitsForLabel: given.build !== undefined && what.startsWith('without a reboot'),
        disrupts: /^by a reboot|drained/.test(what),
      },
    ]);
  });
});

test('nodes that do the same are one line, and the limit of their wait follows', () => {
  const nodes = [node('b', 'rendered-chrony'), node('c', 'rendered-fstab'), node('a', 'rendered-chrony')];
  expect(formatPrediction(predictRollback({ ...input, nodes }))).toEqual([
    '  2 nodes without a reboot (Restart(chronyd.service)): a, b',
    '  1 node by a reboot (/etc/fstab): c',
    "  the builder labels the image for that; if it doesn't within 60 s, these nodes reboot",
  ]);
});

test.each<[string, RollbackPredictionInput, readonly MachineConfigNode[]]>([
  ['every node reboots', input, [node('a', 'rendered-fstab')]],
  [
    'no node has anything to do',
    input,
    [node('a', 'rendered-1', { configImage: { currentImage: image('1') } })],
  ],
  ['there is no image', standard, [node('a', 'rendered-motd', bare)]],
  ['there is no node', input, []],
])('nobody waits where %s', (_what, given, nodes) => {
  expect(formatPrediction(predictRollback({ ...given, nodes })).join('\n')).not.toContain('builder');
});

test('of many nodes ten are named', () => {
  const nodes = Array.from({ length: 12 }, (_, index) => node(`n-${index + 10}`, 'rendered-fstab'));
  expect(formatPrediction(predictRollback({ ...input, nodes }))).toEqual([
    '  12 nodes by a reboot (/etc/fstab): n-10, n-11, n-12, n-13, n-14, n-15, n-16, n-17, n-18, n-19, and 2 more',
  ]);
});

test.each<[string, RollbackPredictionInput, MachineConfigNode, boolean]>([
  ['a reboot', standard, node('a', 'rendered-fstab', bare), true],
  ['a drain', standard, node('a', 'rendered-crio', bare), true],
  ['a restart of a service', standard, node('a', 'rendered-chrony', bare), false],
  ['a restart of a service after the image has its label', input, node('a', 'rendered-chrony'), true],
  ['nothing', standard, node('a', 'rendered-1', bare), false],
])('whether a rollback may disrupt nodes: %s', (_what, given, one, disrupts) => {
  expect(mayDisrupt(predictRollback({ ...given, nodes: [one] }))).toBe(disrupts);
});

import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { machineConfigNode } from '../../test/fixtures/observed-cluster.ts';
import { formatRefusal, refusingNodes } from './refusing-nodes.ts';

const rendered: MachineConfig = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-worker-2' },
  spec: { extensions: ['usbguard'] },
};
const config = { ...emptyNodeConfig, name: rendered.metadata.name, extensions: ['usbguard'] };
const OSTREE: MachineConfigNodeStatus = {
  osBackend: { name: 'ostree', version: '2022.7', installsPackages: false },
  baseImage: `r.example.com/os@sha256:${'1'.repeat(64)}`,
};
const runs = (current: string, mode: 'Standard' | 'Layered' = 'Standard') => ({
  mode,
  configVersion: { current, desired: current },
});
const refusing = (...nodes: readonly (readonly [string, MachineConfigNodeStatus | undefined])[]) =>
  refusingNodes(
    {
      machineConfigNodes: nodes.map(([name, status]) => machineConfigNode(name, status)),
      nodes: [],
      rendered: new Map(),
    },
    { pool: 'worker', rendered, config },
  );

test('nodes with the same reasons are grouped', () => {
  const rpmOstree = { ...OSTREE, osBackend: { name: 'rpm-ostree', installsPackages: true } } as const;
  const bootc = { ...OSTREE, osBackend: { name: 'bootc', installsPackages: false } } as const;
  const refusals = refusing(['b', OSTREE], ['a', OSTREE], ['c', rpmOstree], ['d', bootc]);
  expect(refusals.map(({ nodes, osBackend }) => [osBackend, ...nodes])).toEqual([
    ['ostree 2022.7', 'a', 'b'],
    ['bootc', 'd'],
  ]);
});

test.each<[string, MachineConfigNodeStatus | undefined, number]>([
  ['has not reported its backend', { ...runs('rendered-worker-1') }, 0],
  ['has never reported', undefined, 0],
  ['already runs it', { ...OSTREE, ...runs('rendered-worker-2') }, 0],
  [
    'runs it as an image and returns to the stock image',
    { ...OSTREE, ...runs('rendered-worker-2', 'Layered') },
    1,
  ],
  ['runs a config that no longer exists', { ...OSTREE, ...runs('rendered-worker-0') }, 1],
])('a node that %s', (_what, status, count) => {
  expect(refusing(['a', status])).toHaveLength(count);
});

test('a few nodes are named and the others are counted', () => {
  const [all] = refusing(...Array.from({ length: 12 }, (_, index) => [`n${10 + index}`, OSTREE] as const));
  expect(all === undefined ? '' : formatRefusal(all)).toMatch(
    /^nodes n10, .*, n19 and 2 more \(ostree 2022\.7\) can't apply it without layering: extensions usbguard: /,
  );
});

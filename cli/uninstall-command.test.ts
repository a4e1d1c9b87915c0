import { expect, test } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { labels } from '../api/names.ts';
import { observed } from '../test/fixtures/observed-cluster.ts';
import { uninstallObstacle } from './uninstall-command.ts';

const layered = { status: { mode: 'Layered' } } as MachineConfigNode;
const standard = { status: { mode: 'Standard' } } as MachineConfigNode;
const held = {
  metadata: { name: 'worker-0', annotations: { 'shale.dev/cordoned': 'true' } },
} as unknown as Node;
const config = (made: boolean) =>
  ({
    metadata: { name: 'infra', labels: made ? { [labels.madeBySwitch]: 'true' } : {} },
  }) as unknown as MachineOSConfig;

test.each([
  ['a cluster in standard mode', observed({ machineConfigNodes: [standard] }), undefined],
  [
    'layered nodes and --keep',
    observed({ machineConfigNodes: [layered], machineOSConfigs: [config(false)] }),
    'keep',
  ],
  [
    'layered nodes and --revert',
    observed({ machineConfigNodes: [layered], machineOSConfigs: [config(true)] }),
    'revert',
  ],
] as const)('%s: nothing prevents it', (_, cluster, choice) => {
  expect(uninstallObstacle(cluster, choice)).toBeUndefined();
});

test.each([
  [
    'a node that is being updated',
    observed({ nodes: [held] }),
    'keep',
    'worker-0: an update is in progress, and would leave the node cordoned',
  ],
  [
    'layered nodes without a flag',
    observed({ machineConfigNodes: [layered] }),
    undefined,
    '1 node runs images',
  ],
  [
    'layering that was just enabled',
    observed({ machineOSConfigs: [config(true)] }),
    undefined,
    'layering is enabled, and 0 nodes run images',
  ],
  [
    "an admin's own MachineOSConfig",
    observed({ machineOSConfigs: [config(false)] }),
    'revert',
    'MachineOSConfig infra was created by hand: delete it',
  ],
] as const)('%s: refused', (_, cluster, choice, why) => {
  expect(uninstallObstacle(cluster, choice)).toContain(why);
});

test('every variant of an obstacle is a sentence', () => {
  const second = { ...held, metadata: { ...held.metadata, name: 'worker-1' } };
  expect(uninstallObstacle(observed({ nodes: [second, held] }), 'keep')).toMatch(
    /^worker-0, worker-1: an update is in progress, and would leave the nodes cordoned; /,
  );
  const byHand = ['a', 'b'].map((name) => ({ metadata: { name } }) as MachineOSConfig);
  expect(uninstallObstacle(observed({ machineOSConfigs: byHand }), 'revert')).toBe(
    'MachineOSConfigs a, b were created by hand: delete them to return their pools to the stock image',
  );
  expect(uninstallObstacle(observed({ machineConfigNodes: [layered, layered] }), undefined)).toContain(
    '2 nodes run images; use --revert to return nodes to the stock image first',
  );
});

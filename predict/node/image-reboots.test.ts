import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { machineConfigNode } from '../../test/fixtures/observed-cluster.ts';
import type { ImageToBuild } from '../image/image-to-build.ts';
import { imageReboots } from './image-reboots.ts';

const live = { actions: [{ type: 'DaemonReload' }], causes: [] } as const;
const reboot = { actions: [{ type: 'Reboot' }], causes: [] } as const;
const bootc: MachineConfigNodeStatus = { osBackend: { name: 'bootc', appliesLive: false } };
const ostree: MachineConfigNodeStatus = { osBackend: { name: 'ostree' } };
const image: ImageToBuild = { way: 'Append', why: 'the config changes', problems: [] };

test('the plan names those nodes, where the change itself asks for less', () => {
  const nodes = [
    machineConfigNode('b', bootc),
    machineConfigNode('a', bootc),
    machineConfigNode('c', ostree),
    machineConfigNode('d', undefined),
  ];
  expect(imageReboots(image, live, nodes)).toEqual([
    'counted as a reboot: nodes a, b: bootc keeps deployments in composefs on this host, where no image can be applied live',
  ]);
  expect(imageReboots(image, reboot, nodes)).toEqual([]);
  expect(imageReboots(undefined, live, nodes)).toEqual([]);
});

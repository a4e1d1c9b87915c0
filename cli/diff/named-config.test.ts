import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { aMachineConfigNode, aPool, aRenderedConfig } from '../../test/fixtures/objects.ts';
import { bothSides, type NamingCluster, oneSide } from './named-config.ts';

const config = (name: string) => aRenderedConfig(name);
const pool = (name: string) => ({
  ...aPool(name, { configuration: { name: 'rendered-b' } }),
  status: { configuration: { name: 'rendered-a' } },
});
const IMAGE = `r.example.org/os@sha256:${'1'.repeat(64)}`;
const node = (name: string, current: string) =>
  aMachineConfigNode(
    name,
    { configVersion: { desired: 'rendered-b' }, configImage: { desiredImage: IMAGE } },
    { configVersion: { current, desired: 'rendered-b' }, baseImage: 'old base' },
  );
const build = {
  metadata: { name: 'b' },
  status: { digestedImagePushSpec: IMAGE, baseImage: 'new base' },
} as MachineOSBuild;
const cluster: NamingCluster = {
  objects: [config('50-chrony'), config('both'), pool('worker'), pool('both')],
  rendered: new Map(['rendered-a', 'rendered-b'].map((name) => [name, config(name)])),
  machineConfigNodes: [
    node('worker-0', 'rendered-a'),
    node('fresh', ''),
    node('old', 'rendered-gone'),
    node('both', 'rendered-a'),
  ],
  builds: [build],
};
const summary = ({ config: { metadata }, baseImage }: ReturnType<typeof oneSide>) => [
  metadata.name,
  baseImage,
];

test.each([
  ['50-chrony', ['50-chrony', undefined]],
  ['rendered-a', ['rendered-a', undefined]],
  ['worker', ['rendered-b', undefined]],
  ['worker-0', ['rendered-a', 'old base']],
  ['pool/both', ['rendered-b', undefined]],
  ['node/both', ['rendered-a', 'old base']],
  ['machineconfig/both', ['both', undefined]],
])('%s compared with another', (name, side) => {
  expect(summary(oneSide(name, cluster))).toEqual(side);
});

test.each([
  ['worker', ['rendered-a', undefined], ['rendered-b', undefined]],
  ['node/worker-0', ['rendered-a', 'old base'], ['rendered-b', 'new base']],
])('%s alone', (name, before, after) => {
  expect(bothSides(name, cluster).map(summary)).toEqual([before, after]);
});

describe('names that can not be compared', () => {
  test.each([
    ['nobody', 'nobody is not a MachineConfig, pool or node, and no such file exists'],
    ['pool/worker-0', 'pool/worker-0 is not a MachineConfig, pool or node, and no such file exists'],
    ['both', 'both is ambiguous; expected machineconfig/both or pool/both or node/both'],
    ['fresh', 'node fresh has not reported a rendered config yet'],
    ['old', 'rendered-gone, which node old runs, no longer exists'],
  ])('%s', (name, message) => {
    expect(() => oneSide(name, cluster)).toThrow(message);
  });

  test('one MachineConfig alone', () => {
    expect(() => bothSides('50-chrony', cluster)).toThrow('expected another one to compare it with');
  });
});

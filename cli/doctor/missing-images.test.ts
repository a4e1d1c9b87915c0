import { expect, test } from 'vitest';
import { aPool } from '../../test/fixtures/objects.ts';
import { machineConfigNode, observed } from '../../test/fixtures/observed-cluster.ts';
import { formatMissing, neededImages } from './missing-images.ts';

const REPOSITORY = 'r.io:5000/os/worker';
const image = (digit: string) => `${REPOSITORY}@sha256:${digit.repeat(64)}`;

test('images that nodes run, are to run, or new nodes boot, are looked up in the repository of the pool', () => {
  const node = (name: string, current: string, desired: string) =>
    machineConfigNode(
      name,
      { configImage: { currentImage: current } },
      { configImage: { desiredImage: desired } },
    );
  const cluster = observed({
    pools: [{ ...aPool('worker'), status: { bootImage: { image: image('1'), proof: 'Rollout' } } }],
    machineConfigNodes: [
      node('a', image('1'), image('2')),
      node('b', image('2'), image('2')),
      node('c', `r.io/other/worker@sha256:${'3'.repeat(64)}`, image('2')),
      machineConfigNode('d'),
    ],
  });
  const needed = neededImages({ pool: 'worker', push: `${REPOSITORY}:latest` }, cluster);
  expect(needed).toEqual([
    { image: image('1'), running: ['a'], coming: [], forNewNodes: true },
    { image: image('2'), running: ['b'], coming: ['a', 'c'], forNewNodes: false },
  ]);
  expect(needed.map(formatMissing)).toEqual([
    `${image('1')} is gone from the registry: a still runs it; new nodes are to boot it`,
    `${image('2')} is gone from the registry: b still runs it; a, c are to run it and can't pull it`,
  ]);
  expect(neededImages({ pool: 'infra', push: `${REPOSITORY}:latest` }, cluster)).toEqual([]);
});

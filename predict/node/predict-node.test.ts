import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { parseDigest } from '../../api/references.ts';
import { aBuild, aMachineOSConfig, aRenderedConfig, aSuccess, image } from '../../test/fixtures/objects.ts';
import type { ImageInputs } from '../image/image-inputs.ts';
import { nodeBases } from './predict-node.ts';

const [older, newer, newerOfArm] = [image('1'), image('2'), image('3')];
const built = (requested: string, ...bases: readonly string[]): MachineOSBuild => {
  const build = aBuild('worker-1', 'rendered-worker-1', { status: aSuccess('a', 'Append', bases[0]) });
  const instances = bases.map((baseImage) => ({ architecture: 'amd64', image: image('a'), baseImage }));
  return {
    ...build,
    spec: { ...build.spec, baseImage: requested },
    status: { ...build.status, ...(bases.length > 1 ? { instances } : {}) },
  };
};
const layered = (baseImage: string, more: object = {}): ImageInputs => {
  const config = aMachineOSConfig('worker');
  return {
    rendered: aRenderedConfig('rendered-worker-1'),
    machineOSConfig: { ...config, spec: { ...config.spec, baseImage, ...more } },
    policyDigest: '',
  };
};
const TAG = 'registry.test:5000/os:1';
const lookedUp = (...digits: readonly string[]): ImageInputs => {
  const digests = digits.map((digit) => parseDigest(`sha256:${digit.repeat(64)}`));
  const [digest = parseDigest('')] = digests;
  const platforms = new Map(digests.slice(1).map((own, index) => [String(index), own]));
  return { ...layered(TAG), lookups: new Map([[TAG, { kind: 'found', digest, platforms }]]) };
};
const looked = (digit: string) => `registry.test:5000/os@sha256:${digit.repeat(64)}`;
const standard = (osImageURL: string): ImageInputs => ({
  rendered: aRenderedConfig('rendered-worker-1', osImageURL),
  machineOSConfig: undefined,
  policyDigest: '',
});
const on = (baseImage: string, mode: 'Layered' | 'Standard' = 'Layered'): MachineConfigNodeStatus => ({
  mode,
  baseImage,
});
const between = (fromBase: string, toBase: string) => ({ fromBase, toBase });

test.each<[string, MachineConfigNodeStatus, ImageInputs, MachineOSBuild[], ReturnType<typeof nodeBases>]>([
  [
    'a node that is behind on the base',
    on(older),
    layered(newer),
    [built(newer, newer)],
    between(older, newer),
  ],
  ['a node that has the base', on(newer), layered(newer), [built(newer, newer)], between(newer, newer)],
  [
    'a node that has an image of an index',
    on(newerOfArm),
    layered(image('9')),
    [built(image('9'), newer, newerOfArm)],
    between(newerOfArm, newerOfArm),
  ],
  ['a base on which nothing was built', on(older), layered(newer), [built(older, older)], undefined],
  ['a base by tag', on(older), layered(TAG), [built(newer, newer)], undefined],
  ['a tag of what the node has', on(looked('1')), lookedUp('1'), [], between(looked('1'), looked('1'))],
  ['a tag of another image', on(looked('1')), lookedUp('2'), [], between(looked('1'), looked('2'))],
  ['a tag of an index', on(looked('2')), lookedUp('9', '1', '2'), [], between(looked('2'), looked('2'))],
  [
    'a tag of an index without the image',
    on(looked('3')),
    lookedUp('9', '1', '2'),
    [],
    between(looked('3'), looked('1')),
  ],
  [
    'packages by an engine',
    on(older),
    layered(newer, { packages: ['vim'] }),
    [built(newer, newer)],
    undefined,
  ],
  ['a switch of the mode', on(older, 'Standard'), layered(newer), [built(newer, newer)], undefined],
  ['the way out of layering', on(older), standard(newer), [], undefined],
  ['another system in standard mode', on(older, 'Standard'), standard(newer), [], between(older, newer)],
  ['no system named in standard mode', on(older, 'Standard'), standard(''), [], between(older, older)],
  ['a node that reports none', { mode: 'Standard' }, standard(newer), [], undefined],
])('the base images of %s', (_what, node, to, builds, expected) => {
  expect(nodeBases(node, to, builds)).toEqual(expected);
});

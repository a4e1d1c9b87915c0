import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { LayeredPool } from '../../predict/image/layered-pool.ts';
import { condition } from '../../test/fixtures/observed-cluster.ts';
import { predictWay } from './way.ts';

const STOCK = `r.example.com/os@sha256:${'a'.repeat(64)}`;
const standard = (config = 'rendered-1'): { status: MachineConfigNodeStatus } => ({
  status: {
    mode: 'Standard',
    configVersion: { current: config, desired: config },
    baseImage: STOCK,
    osBackend: { name: 'ostree' },
  },
});
const layered: { status: MachineConfigNodeStatus } = { status: { mode: 'Layered' } };
const unsupported = { status: { conditions: [condition('NodeDegraded', 'True', '', 'UnsupportedHost')] } };
const image: LayeredPool = { config: 'rendered-1', base: STOCK, byEngine: false };

test.each<[string, ReturnType<typeof standard>[], LayeredPool | undefined, string]>([
  ['equal nodes', [standard(), standard()], image, 'switching 2 of 2 nodes to an image, without a reboot'],
  [
    'a node of another config',
    [standard('rendered-0')],
    image,
    'switching 1 of 1 node to an image, one reboot per node',
  ],
  [
    'nodes of both kinds',
    [standard('rendered-0'), standard(), layered],
    image,
    'switching 2 of 3 nodes to an image, 1 of them with a reboot',
  ],
  [
    'a host that is not supported',
    [standard(), unsupported],
    image,
    'switching 1 of 2 nodes to an image, without a reboot; 1 of 2 nodes is not supported and keeps what it runs',
  ],
  [
    'a base image by tag',
    [standard()],
    { ...image, base: 'r.example.com/os:1' },
    'switching 1 of 1 node to an image, at most one reboot per node',
  ],
  [
    'a base image by tag that was looked up',
    [standard()],
    { ...image, base: `r.example.com/os:1@sha256:${'a'.repeat(64)}` },
    'switching 1 of 1 node to an image, without a reboot',
  ],
  [
    'an index by tag that was looked up',
    [standard()],
    { ...image, base: `r.example.com/os:1@sha256:${'9'.repeat(64)}`, images: [STOCK] },
    'switching 1 of 1 node to an image, without a reboot',
  ],
  [
    'no rendered config',
    [standard()],
    undefined,
    'switching 1 of 1 node to an image, at most one reboot per node',
  ],
  [
    'an engine',
    [standard()],
    { ...image, byEngine: true },
    'switching 1 of 1 node to an image, one reboot per node',
  ],
  ['nodes that are layered', [layered], image, '1 node, already on an image'],
])('tells what layering costs: %s', (_name, nodes, to, text) => {
  const way = predictWay(nodes, { isLayered: true, to, otherImage: false });
  expect(way).toEqual({ text, disrupts: /(?<!without a) reboot/.test(text) });
});

test('tells what the way back costs', () => {
  const way = predictWay([layered, standard()], { isLayered: false, to: undefined, otherImage: false });
  expect(way).toEqual({
    text: 'switching 1 of 2 nodes to the stock image, one reboot per node',
    disrupts: true,
  });
});

test('tells what another image costs the nodes that run one', () => {
  const other = { isLayered: true, to: image, otherImage: true };
  expect(predictWay([layered, standard()], other)).toEqual({
    text: 'switching 1 of 2 nodes to an image, without a reboot; updating 1 of 2 nodes to another image, at most one reboot per node',
    disrupts: true,
  });
  expect(predictWay([layered], other)).toEqual({
    text: 'updating 1 of 1 node to another image, at most one reboot per node',
    disrupts: true,
  });
  expect(predictWay([standard()], { ...other, isLayered: false })).toEqual({
    text: '1 node, already on the stock image',
    disrupts: false,
  });
});

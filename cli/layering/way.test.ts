import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { LayeredPool } from '../change/opt-in.ts';
import { formatWay } from './way.ts';

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
  expect(formatWay(nodes, true, to)).toBe(text);
});

test('tells what the way back costs', () => {
  expect(formatWay([layered, standard()], false, undefined)).toBe(
    'switching 1 of 2 nodes to the stock image, one reboot per node',
  );
});

import { expect, test } from 'vitest';
import type { NodePrediction, PredictedNode } from '../../predict/node/predict-node.ts';
import { machineConfigNode } from '../../test/fixtures/observed-cluster.ts';
import { formatWay, type SwitchedTo } from './way.ts';

const node = (mode: 'Standard' | 'Layered', prediction: NodePrediction): PredictedNode => ({
  node: machineConfigNode('worker-0', { mode }),
  prediction,
});
const equal = node('Standard', { kind: 'acts', decision: { actions: [], causes: [] } });
const rebooting = node('Standard', { kind: 'reboots', why: 'its image has rendered-2' });
const unknown = node('Standard', { kind: 'unknown', why: 'it has not reported what it runs' });
const unsupported = node('Standard', { kind: 'keeps', why: 'bootc: no ostree' });
const layered = node('Layered', { kind: 'arrived' });
const reverting = node('Layered', { kind: 'reboots', why: 'it returns to the stock image' });

const image: SwitchedTo = { mode: 'Layered', isBaseKnown: true, otherImage: false };
const unknownBase: SwitchedTo = { ...image, isBaseKnown: false };
const other: SwitchedTo = { ...image, otherImage: true };
const stock: SwitchedTo = { mode: 'Standard' };

test.each<[string, readonly PredictedNode[], SwitchedTo, string]>([
  ['equal nodes', [equal, equal], image, 'switching 2 of 2 nodes to an image, without a reboot'],
  ['another config', [rebooting], image, 'switching 1 of 1 node to an image, one reboot per node'],
  ['a node that reports nothing', [unknown], image, 'switching 1 of 1 node to an image, one reboot per node'],
  [
    'nodes of both kinds',
    [rebooting, equal, layered],
    image,
    'switching 2 of 3 nodes to an image, 1 of them with a reboot',
  ],
  [
    'a host that is not supported',
    [equal, unsupported],
    image,
    'switching 1 of 2 nodes to an image, without a reboot; 1 of 2 nodes is not supported and keeps what it runs',
  ],
  [
    'a base image whose digest is not known',
    [rebooting],
    unknownBase,
    'switching 1 of 1 node to an image, at most one reboot per node',
  ],
  ['nodes that are layered', [layered], image, '1 node, already on an image'],
  [
    'the way back',
    [reverting, node('Standard', { kind: 'arrived' })],
    stock,
    'switching 1 of 2 nodes to the stock image, one reboot per node',
  ],
  ['the way back of nodes that never left', [equal], stock, '1 node, already on the stock image'],
  [
    'another image for nodes that run one',
    [layered, equal],
    other,
    'switching 1 of 2 nodes to an image, without a reboot; updating 1 of 2 nodes to another image, at most one reboot per node',
  ],
  [
    'another image and nothing else',
    [layered],
    other,
    'updating 1 of 1 node to another image, at most one reboot per node',
  ],
])('tells what the layering switch costs: %s', (_name, nodes, to, text) => {
  expect(formatWay(nodes, to)).toEqual({ text, disrupts: /(?<!without a) reboot/.test(text) });
});

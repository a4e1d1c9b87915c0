/** The first boot of a machine of ostree that joins a pool. */
import { isDrawn } from '../../fixtures/sample.ts';
import { noLab } from '../lab.ts';
import { DEBIAN_12 } from '../lab-node.ts';
import { newNodesContract } from './new-nodes-contract.ts';

const skip = noLab !== undefined || !isDrawn('new nodes');

newNodesContract('of plain ostree', { system: DEBIAN_12, canSwitch: false, skip });

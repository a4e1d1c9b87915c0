import { newNodesContract } from '../new-nodes/new-nodes-contract.ts';
import { bootcSystem } from './bootc-system.ts';
import { BOOTC, noBootc } from './given-bootc.ts';

const what = 'that bootc keeps';

newNodesContract(noBootc === undefined ? what : `${what} (skipped: ${noBootc})`, {
  system: bootcSystem(BOOTC, ['cloud-init']),
  canSwitch: true,
  skip: noBootc !== undefined,
});

import { newNodesContract } from '../new-nodes/new-nodes-contract.ts';
import { givenSystem, noMorePackages } from './given-bootc.ts';

const what = 'that bootc keeps';

newNodesContract(noMorePackages === undefined ? what : `${what} (skipped: ${noMorePackages})`, {
  system: givenSystem(['cloud-init']),
  canSwitch: true,
  skip: noMorePackages !== undefined,
});

/** The first boot of a machine that was installed from a layered image of bootc. */
import { newNodesContract } from '../new-nodes/new-nodes-contract.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { givenSystem, noDebian } from './given-bootc.ts';

const what = 'that bootc keeps';

newNodesContract(noDebian === undefined ? what : `${what} (skipped: ${noDebian})`, {
  system: givenSystem((bootc) => bootcRecipe(bootc, ['cloud-init'])),
  canSwitch: true,
  skip: noDebian !== undefined,
});

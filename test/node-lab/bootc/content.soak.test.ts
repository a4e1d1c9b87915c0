/** The course of contents on a machine that bootc keeps. */
import { contentOfLabNode } from '../base-content/content-of-lab-node.ts';
import { withLinks } from '../base-content/linked-base.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { givenSystem, noDebian } from './given-bootc.ts';

contentOfLabNode('a machine that bootc keeps', {
  missing: noDebian,
  system: () => givenSystem((bootc) => withLinks(bootcRecipe(bootc))),
});

/** The course of contents on a machine that rpm-ostree keeps. */
import { contentOfLabNode } from '../base-content/content-of-lab-node.ts';
import { withLinks } from '../base-content/linked-base.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeRecipe } from './rpm-ostree-recipe.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

contentOfLabNode('a machine that rpm-ostree keeps', {
  missing: noRpmOstree,
  system: () => rpmOstreeSystem(RPM_OSTREE, (files) => withLinks(rpmOstreeRecipe(files))),
});

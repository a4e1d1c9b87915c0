/** The course of contents on bootc without ostree, booted: an image is what standard mode writes there too. */
import { contentCourse } from '../base-content/content-course.ts';
import { listGuest } from '../base-content/guest-listing.ts';
import { withLinks } from '../base-content/linked-base.ts';
import { LAB_SERVICE } from '../lab-updates.ts';
import { describeMachine } from '../virtual-machine/describe-machine.ts';
import { composefsSystem } from './composefs-system.ts';
import { BOOTC_FILES, noVirtualBootc } from './given-bootc.ts';
import { virtualLayer, virtualRecipe, withoutBootPartition } from './virtual-recipe.ts';

const STOCK = [...withoutBootPartition(virtualLayer()), ...LAB_SERVICE];

describeMachine(
  'content on a machine that bootc keeps without ostree',
  STOCK,
  {
    name: 'composefs-content',
    missing: noVirtualBootc,
    system: composefsSystem(BOOTC_FILES, (files) => withLinks(virtualRecipe(files))),
  },
  (machine) => contentCourse(machine, { list: () => listGuest(machine.lab.machine), takesLive: false }),
);

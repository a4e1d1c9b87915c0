/** The course of contents on machines of ostree, with and without composefs. */
import { CACHE } from '../../workshop/sandbox/layout.ts';
import { CONTAINER_RECIPE } from '../../workshop/sandbox/systemd-node/rootfs.ts';
import { ensureRootfsArchive } from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { deadline } from '../fixtures/patience.ts';
import { contentOfLabNode } from './base-content/content-of-lab-node.ts';
import { withLinks } from './base-content/linked-base.ts';
import { FIRST_TIME_MS, noLab } from './lab.ts';
import { DEBIAN_12 } from './lab-node.ts';
import { COMING_DEBIAN, COMING_RECIPE, comingArchive, noComingDebian } from './prepared-root.ts';

contentOfLabNode('a machine that ostree keeps', {
  missing: noLab,
  system: () => ({
    ...DEBIAN_12,
    archive: () =>
      ensureRootfsArchive(CACHE, deadline(FIRST_TIME_MS), undefined, withLinks(CONTAINER_RECIPE)),
  }),
});

contentOfLabNode('a machine whose root is a composefs', {
  missing: noComingDebian,
  system: () => ({ ...COMING_DEBIAN, archive: () => comingArchive(withLinks(COMING_RECIPE)) }),
});

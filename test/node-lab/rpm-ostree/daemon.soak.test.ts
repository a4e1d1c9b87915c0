/** The daemon's course on a machine that rpm-ostree keeps. */
import { daemonOfTool } from '../tool-daemon.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

daemonOfTool('rpm-ostree', () => rpmOstreeSystem(RPM_OSTREE), noRpmOstree);

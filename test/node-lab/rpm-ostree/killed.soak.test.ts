/** The daemon killed during updates by rpm-ostree: its transactions go on without it. */
import { killedDaemonOfTool } from '../tool-killed.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

killedDaemonOfTool('rpm-ostree', () => rpmOstreeSystem(RPM_OSTREE), noRpmOstree);

/** rpm-ostree's own pulls: policy, mirrors and credentials as it reads them. */
import { rpmOstree } from '../../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { pullsOfTool } from '../tool-pulls.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

pullsOfTool('rpm-ostree', rpmOstree, () => rpmOstreeSystem(RPM_OSTREE), noRpmOstree);

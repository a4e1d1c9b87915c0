import type { ImageTool } from '../image-tool/image-tool.ts';
import type { RunOsCommand } from '../os-command.ts';
import { rpmOstreeCleanup, rpmOstreeDropPending } from './cleanup.ts';
import { rpmOstreeDeployPackages } from './deploy-packages.ts';
import { rpmOstreeRebase } from './rebase.ts';
import { ROLLBACK_COMMAND, rpmOstreeRollback } from './rollback.ts';
import { rpmOstreeDeployments, rpmOstreeStatus } from './status.ts';

/** @param run runs commands on the host. @returns rpm-ostree, by the client of its daemon. */
export function rpmOstree(run: RunOsCommand): ImageTool {
  return {
    name: 'rpm-ostree',
    deployments: async (signal) => rpmOstreeDeployments(await rpmOstreeStatus(run, signal)),
    pull: (image, options) => rpmOstreeRebase(run, image, options),
    deployPackages: (image, options) => rpmOstreeDeployPackages(run, image, options),
    dropNext: (_count, signal) => rpmOstreeDropPending(run, signal),
    rollback: (signal) => rpmOstreeRollback(run, signal),
    rollbackCommand: ROLLBACK_COMMAND,
    cleanup: (signal) => rpmOstreeCleanup(run, signal),
  };
}

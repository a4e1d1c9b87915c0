import type { ImageTool } from '../image-tool/image-tool.ts';
import type { RunOsCommand } from '../os-command.ts';
import { ostree } from '../ostree/ostree.ts';
import { bootcRollback, ROLLBACK_COMMAND } from './rollback.ts';
import { bootcDeployments, bootcStatus } from './status.ts';
import { bootcSwitch } from './switch.ts';

/** @param run runs commands on the host. @returns bootc, with ostree for what bootc has no command for. */
export function bootc(run: RunOsCommand): ImageTool {
  const host = ostree(run, '/');
  return {
    name: 'bootc',
    deployments: async (signal) => bootcDeployments(await bootcStatus(run, signal)),
    pull: (image, options) => bootcSwitch(run, image, options),
    // `bootc rollback` would drop what is staged too, but make the previous deployment the next boot.
    dropNext: async (count, signal) => {
      for (let left = count; left > 0; left -= 1) await host.undeploy(0, signal);
    },
    rollback: (signal) => bootcRollback(run, signal),
    rollbackCommand: ROLLBACK_COMMAND,
    // Images that no deployment is of are pruned by each `bootc switch`.
    cleanup: async () => undefined,
  };
}

import type { DigestedPullspec } from '../../../api/references.ts';
import type { ImageTool, PullOptions } from '../image-tool/image-tool.ts';
import { type RunOsCommand, shellWords } from '../os-command.ts';
import { ostree } from '../ostree/ostree.ts';
import { bootcDeployments, bootcStatus } from './status.ts';

/** A whole operating system over a slow line. */
const SWITCH_TIMEOUT_MS = 3_600_000;
const ROLLBACK_TIMEOUT_MS = 120_000;
/** The command of bootcRollback. */
export const ROLLBACK_COMMAND = ['bootc', 'rollback'] as const;

/** @param run runs commands on the host. @returns bootc, with ostree for what bootc has no command for. */
export function bootc(run: RunOsCommand): ImageTool {
  const host = ostree(run, '/');
  return {
    name: 'bootc',
    // `bootc upgrade` has --download-only, and `bootc switch` (1.16) has nothing like it.
    keepsLock: false,
    deployments: async (signal) => bootcDeployments(await bootcStatus(run, signal)),
    pull: (image, options) => bootcSwitch(run, image, options),
    // `bootc rollback` would drop what is staged too, but make the previous deployment the next boot.
    dropNext: async (count, signal) => {
      for (let left = count; left > 0; left -= 1) await host.undeploy(0, signal);
    },
    rollback: (signal) => bootcRollback(run, signal),
    rollbackScript: shellWords(ROLLBACK_COMMAND),
    // Images that no deployment is of are pruned by each `bootc switch`.
    cleanup: async () => undefined,
  };
}

/**
 * `bootc switch`: pulls an image and stages it. It does nothing when that image is staged already, or booted and
 * nothing staged. Where it keeps deployments in composefs, it refuses an image with the content of a deployment that is
 * there.
 *
 * @throws OsCommandError
 */
export async function bootcSwitch(
  run: RunOsCommand,
  image: DigestedPullspec,
  { mustBeSigned, signal }: PullOptions,
): Promise<void> {
  const policy = mustBeSigned ? ['--enforce-container-sigpolicy'] : [];
  await run(['bootc', 'switch', '--quiet', '--transport=registry', ...policy, image], {
    timeoutMs: SWITCH_TIMEOUT_MS,
    signal,
  });
}

/**
 * `bootc rollback`: swaps the booted deployment and the one after it in the boot order, each with the /etc it has. What
 * is staged is lost. Run again, bootc swaps them back.
 *
 * @throws OsCommandError, also when the previous deployment is of no image.
 */
export async function bootcRollback(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  await run([...ROLLBACK_COMMAND], { timeoutMs: ROLLBACK_TIMEOUT_MS, signal });
}

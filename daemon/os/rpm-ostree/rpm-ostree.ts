import type { DigestedPullspec } from '../../../api/references.ts';
import type { ImageTool, StagePullOptions } from '../image-tool/image-tool.ts';
import { type RunOsCommand, shellWords } from '../os-command.ts';
import { rpmOstreeDeployPackages } from './deploy-packages.ts';
import { imageReference, rpmOstreeDeployments, rpmOstreeStatus } from './status.ts';
import { transaction } from './transaction.ts';

/** A whole operating system over a slow line. */
const REBASE_TIMEOUT_MS = 3_600_000;
const ROLLBACK_TIMEOUT_MS = 120_000;
const CLEANUP_TIMEOUT_MS = 600_000;
const ROLLBACK_COMMAND = ['rpm-ostree', 'rollback'] as const;
/**
 * rpm-ostree refuses a rollback while something is staged: by an admin, or by its own automatic updates. Without that
 * check `cleanup --pending` would delete a deployment that a rollback has already put before the booted one.
 */
const ROLLBACK_SCRIPT = `if ostree admin status --sysroot=/ | grep -q '^[* ] [^ ]* [0-9a-f]*\\.[0-9]* (staged)'; then
  rpm-ostree cleanup --pending || return 1
fi
${shellWords(ROLLBACK_COMMAND)}`;

/** @param run runs commands on the host. @returns rpm-ostree, by the client of its daemon. */
export function rpmOstree(run: RunOsCommand): ImageTool {
  return {
    name: 'rpm-ostree',
    keepsLock: true,
    deployments: async (signal) => rpmOstreeDeployments(await rpmOstreeStatus(run, signal)),
    pull: (image, options) => rpmOstreeRebase(run, image, options),
    deployPackages: (image, options) => rpmOstreeDeployPackages(run, image, options),
    dropNext: (_count, signal) => rpmOstreeDropPending(run, signal),
    rollback: (signal) => rpmOstreeRollback(run, signal),
    rollbackScript: ROLLBACK_SCRIPT,
    cleanup: (signal) => rpmOstreeCleanup(run, signal),
  };
}

/**
 * `rpm-ostree rebase`: pulls an image and stages it, with the packages that are layered on the booted one. It refuses
 * an image that is the next boot already.
 *
 * @throws OsCommandError
 */
function rpmOstreeRebase(
  run: RunOsCommand,
  image: DigestedPullspec,
  { mustBeSigned, locked, signal }: StagePullOptions,
): Promise<void> {
  const lock = locked ? ['--lock-finalization'] : [];
  const command = ['rpm-ostree', 'rebase', ...lock, imageReference(image, { mustBeSigned })] as const;
  return transaction(run, command, { timeoutMs: REBASE_TIMEOUT_MS, signal });
}

/**
 * `rpm-ostree rollback`: makes the deployment after the booted one the first, with the /etc it has. Run again,
 * rpm-ostree swaps them back.
 *
 * @throws OsCommandError, TransactionLostError
 */
function rpmOstreeRollback(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  const options = { timeoutMs: ROLLBACK_TIMEOUT_MS, signal, isRepeatable: false };
  return transaction(run, ROLLBACK_COMMAND, options);
}

/** `rpm-ostree cleanup --pending`: deletes what is before the booted deployment. @throws OsCommandError */
function rpmOstreeDropPending(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  return transaction(run, ['rpm-ostree', 'cleanup', '--pending'], { timeoutMs: CLEANUP_TIMEOUT_MS, signal });
}

/** `rpm-ostree cleanup --base`: deletes images and packages that no deployment needs. @throws OsCommandError */
function rpmOstreeCleanup(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  return transaction(run, ['rpm-ostree', 'cleanup', '--base'], { timeoutMs: CLEANUP_TIMEOUT_MS, signal });
}

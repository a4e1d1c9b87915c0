import type { RunOsCommand } from '../os-command.ts';
import { transaction } from './transaction.ts';

const TIMEOUT_MS = 600_000;

/** `rpm-ostree cleanup --pending`: deletes what is before the booted deployment. @throws OsCommandError */
export function rpmOstreeDropPending(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  return transaction(run, ['rpm-ostree', 'cleanup', '--pending'], { timeoutMs: TIMEOUT_MS, signal });
}

/** `rpm-ostree cleanup --base`: deletes images and packages that no deployment needs. @throws OsCommandError */
export function rpmOstreeCleanup(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  return transaction(run, ['rpm-ostree', 'cleanup', '--base'], { timeoutMs: TIMEOUT_MS, signal });
}

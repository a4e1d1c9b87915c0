import type { RunOsCommand } from '../os-command.ts';
import { transaction } from './transaction.ts';

export const ROLLBACK_COMMAND = ['rpm-ostree', 'rollback'] as const;
const TIMEOUT_MS = 120_000;

/**
 * `rpm-ostree rollback`: makes the deployment after the booted one the first, with the /etc it has. Asked again,
 * rpm-ostree swaps them back.
 *
 * @throws OsCommandError
 */
export function rpmOstreeRollback(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  const options = { timeoutMs: TIMEOUT_MS, signal, isRepeatable: false };
  return transaction(run, ROLLBACK_COMMAND, options);
}

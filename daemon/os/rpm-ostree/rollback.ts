import type { RunOsCommand } from '../os-command.ts';
import { transaction } from './transaction.ts';

const TIMEOUT_MS = 120_000;

/**
 * `rpm-ostree rollback`: makes the deployment after the booted one the first, with the /etc it has. Asked again,
 * rpm-ostree swaps them back.
 *
 * @throws OsCommandError
 */
export function rpmOstreeRollback(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  const options = { timeoutMs: TIMEOUT_MS, signal, isRepeatable: false };
  return transaction(run, ['rpm-ostree', 'rollback'], options);
}

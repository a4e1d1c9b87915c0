import type { RunOsCommand } from '../os-command.ts';

export const ROLLBACK_COMMAND = ['bootc', 'rollback'] as const;
const TIMEOUT_MS = 120_000;

/**
 * `bootc rollback`: swaps the booted deployment and the one after it in the boot order, each with the /etc it has. What is
 * staged is lost. Asked again, bootc swaps them back.
 *
 * @throws OsCommandError, also when the previous deployment is of no image.
 */
export async function bootcRollback(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  await run([...ROLLBACK_COMMAND], { timeoutMs: TIMEOUT_MS, signal });
}

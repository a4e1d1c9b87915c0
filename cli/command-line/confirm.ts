import { createInterface } from 'node:readline/promises';
import { visibleLine } from '../../api/visible-text.ts';
import { CommandError } from './exit-codes.ts';

/** @returns whether a person can be asked: standard input and standard error are terminals. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/**
 * Asks the user for a confirmation, on standard error. Ctrl-D means no; Ctrl-C interrupts the command.
 *
 * @returns whether the answer is yes; undefined when there is nobody to ask.
 * @throws the AbortError of the signal.
 */
export async function confirm(question: string, signal: AbortSignal): Promise<boolean | undefined> {
  if (!canAsk()) return undefined;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  // A terminal in raw mode sends Ctrl-C as a character and not as a signal.
  prompt.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  prompt.on('close', () => resolve(''));
  try {
    const answer = await Promise.race([
      prompt.question(`${visibleLine(question)} [y/N] `, { signal }),
      closed,
    ]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}

/**
 * @param refusal what to say where there is nobody to ask.
 * @throws {CommandError} unless the answer is yes.
 */
export async function requireYes(question: string, refusal: string, signal: AbortSignal): Promise<void> {
  const answer = await confirm(question, signal);
  if (answer !== true) throw new CommandError(answer === false ? 'no changes were made' : refusal);
}

import { createInterface } from 'node:readline/promises';

/**
 * Asks a person.
 *
 * @returns whether the answer is yes; undefined where nobody is there to answer.
 */
export async function confirm(question: string, signal: AbortSignal): Promise<boolean | undefined> {
  if (process.stdin.isTTY !== true) return undefined;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await prompt.question(`${question} [y/N] `, { signal });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}

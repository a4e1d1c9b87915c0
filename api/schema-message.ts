import { z } from 'zod';
import { errorMessage } from './error-message.ts';

/**
 * Zod's messages begin with what is wrong, in words of its own; those of Shale's schemas say what is expected.
 *
 * @param message of an issue.
 * @returns what is expected, as a phrase.
 */
export function expectedBy(message: string): string {
  const [, type] = /^Invalid (?:input|option|value): expected (.*?)(?:, received .*)?$/.exec(message) ?? [];
  const [, size] = /^Too (?:big|small): expected \w+ to (.*)$/.exec(message) ?? [];
  if (type !== undefined) return type;
  return size === undefined ? message : `it to ${size}`;
}

/** @returns why a value can't be read, in one line: each field that is wrong with what is expected there. */
export function formatSchemaError(error: unknown): string {
  if (!(error instanceof z.ZodError)) return errorMessage(error);
  return error.issues
    .map(({ path, message }) => `${formatPath(path)}expected ${expectedBy(message)}`)
    .join(', ');
}

function formatPath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.length === 0 ? '' : `${steps.join('').replace(/^\./, '')}: `;
}

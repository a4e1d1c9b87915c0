import type { z } from 'zod';

/** A request that doesn't have the form that its hook requires. */
export class NotUnderstood extends Error {
  override readonly name = 'NotUnderstood';

  /** @param what was read. @param error says what is wrong with which field. */
  static of(what: string, error: z.ZodError): NotUnderstood {
    const issues = error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`);
    return new NotUnderstood(`${what}: ${issues.join(', ')}`, { cause: error });
  }
}

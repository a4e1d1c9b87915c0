import { formatSchemaError } from '../../api/schema-message.ts';

/** A request that doesn't have the form that its hook requires. */
export class NotUnderstood extends Error {
  override readonly name = 'NotUnderstood';

  /** @param what was read. @param error of its schema, which says what is wrong with which field. */
  static of(what: string, error: unknown): NotUnderstood {
    return new NotUnderstood(`${what}: ${formatSchemaError(error)}`, { cause: error });
  }
}

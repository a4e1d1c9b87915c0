import { errorMessage } from '../../api/error-message.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import { UsageError } from '../command-line/exit-codes.ts';

/** @returns the image that an argument names. @throws CommandError */
export function namedReference(name: string): Reference {
  try {
    return parseReference(name);
  } catch (cause) {
    throw new UsageError(errorMessage(cause), { cause });
  }
}

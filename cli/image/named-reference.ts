import { errorMessage } from '../../api/error-message.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import { asGiven } from '../command-line/exit-codes.ts';

/** @returns the image that an argument names. @throws CommandError */
export function namedReference(name: string): Reference {
  return asGiven(() => parseReference(name), errorMessage);
}

import type { MachineParts, PartChanges } from './machine-parts.ts';

/**
 * @returns the parts that differ and can be changed in place, and every other difference with the reason why it needs a
 *   new machine. Only what `desired` has is judged: what is replaced doesn't have to be readable.
 */
export function changedParts(_current: MachineParts, _desired: MachineParts): PartChanges {
  throw new Error('to come');
}

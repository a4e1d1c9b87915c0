/** A plan that was no promise, or a node that is not what it says, with all that is needed to see why. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

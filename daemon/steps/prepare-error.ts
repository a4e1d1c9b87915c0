/** The target can't be prepared as things are: what has to change is in the message. It is tried again. */
export class PrepareRefused extends Error {
  override readonly name = 'PrepareRefused';
}

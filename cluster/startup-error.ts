/** A process can't start, and the message is all that an admin needs: it is printed as one line, without a stack. */
export class StartupError extends Error {
  /** `refused`: it must not; `unavailable`: something that it needs is missing. */
  readonly kind: 'refused' | 'unavailable';

  constructor(kind: StartupError['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartupError';
    this.kind = kind;
  }
}

/**
 * Why an update doesn't start, or is put back before its grant. Conditions, `shale status` and the page format their
 * texts from it.
 */
export interface Hold {
  /** CamelCase, as reasons of conditions are. It names the gate, or the case where a gate has several. */
  readonly reason: string;
  /** A clause of a message. */
  readonly message: string;
  /** When it ends, in ms since the epoch; absent where more than time is missing. */
  readonly until?: number | undefined;
}

/** What holds one node. */
export interface NodeHold extends Hold {
  readonly name: string;
}

/** What delays the start of nodes that were chosen. */
export interface StartHold {
  /** Undefined: for a moment that nobody has to know of. */
  readonly hold: Hold | undefined;
  /** Names of nodes. */
  readonly held: ReadonlySet<string>;
}

/** What a service outside of the cluster answers: whether updates are held back. */
export type HoldState =
  | { readonly kind: 'clear' }
  /** The question is under way; the pool is reconciled when there is an answer. */
  | { readonly kind: 'asking' }
  | { readonly kind: 'holds'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

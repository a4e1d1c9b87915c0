/** How far what is waited for has come. */
export type Arrival =
  | { readonly kind: 'arrived' }
  /** How far it is, in words. */
  | { readonly kind: 'underway'; readonly seen: string }
  /** It has come to a stop, and why. */
  | { readonly kind: 'stopped'; readonly why: string };

/** How far one of several has come. */
export interface PartArrival {
  readonly name: string;
  /** What is not there yet, in words. */
  readonly missing?: string;
  /** Why it won't come by itself. */
  readonly stopped?: string;
}

/** @returns how far all of them have come: one that stands still counts more than those that are on their way. */
export function arrivalOfAll(parts: readonly PartArrival[]): Arrival {
  const stopped = parts.flatMap(({ name, stopped: why }) =>
    why === undefined ? [] : [`pool ${name}: ${why}`],
  );
  if (stopped.length > 0) return { kind: 'stopped', why: stopped.join('; ') };
  const missing = parts.flatMap(({ name, missing: what }) =>
    what === undefined ? [] : [`${name}: ${what}`],
  );
  return missing.length > 0 ? { kind: 'underway', seen: missing.join(', ') } : { kind: 'arrived' };
}

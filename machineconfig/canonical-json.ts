/**
 * Canonical JSON: no white space, keys ordered by code unit, absent fields omitted. A hash of it doesn't depend on the
 * order in which an object was built.
 *
 * @param value made of objects, arrays, strings, finite numbers, booleans and null
 * @returns the text
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(inCanonicalOrder(value)) ?? 'null';
}

/**
 * @param value as for {@link canonicalJson}
 * @param written keeps the bytes of entries of arrays, for a caller that writes the same objects again and never
 *   changes them
 * @returns canonicalJson of it in UTF-8
 */
export function canonicalBytes(value: unknown, written: WeakMap<object, Uint8Array>): Buffer {
  const writer = new Writer(written);
  writer.write(value);
  return writer.bytes();
}

const COMMA = Buffer.from(',');

/** Entries are written as bytes that may be known; all around them is short. */
class Writer {
  readonly #written: WeakMap<object, Uint8Array>;
  readonly #parts: Uint8Array[] = [];

  constructor(written: WeakMap<object, Uint8Array>) {
    this.#written = written;
  }

  write(value: unknown): void {
    if (typeof value !== 'object' || value === null) this.#text(canonicalJson(value));
    else if (Array.isArray(value)) this.#list(value);
    else this.#fields(value as Readonly<Record<string, unknown>>);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #fields(fields: Readonly<Record<string, unknown>>): void {
    const present = Object.entries(withSortedKeys(fields, (value) => value)).filter(
      ([, value]) => value !== undefined,
    );
    this.#text('{');
    for (const [index, [key, value]] of present.entries()) {
      this.#text(`${index === 0 ? '' : ','}${JSON.stringify(key)}:`);
      this.write(value);
    }
    this.#text('}');
  }

  #list(entries: readonly unknown[]): void {
    this.#text('[');
    for (const [index, entry] of entries.entries()) {
      if (index > 0) this.#parts.push(COMMA);
      this.#parts.push(this.#bytesOf(entry));
    }
    this.#text(']');
  }

  #bytesOf(entry: unknown): Uint8Array {
    if (typeof entry !== 'object' || entry === null) return Buffer.from(canonicalJson(entry));
    const known = this.#written.get(entry);
    if (known !== undefined) return known;
    const bytes = Buffer.from(canonicalJson(entry));
    this.#written.set(entry, bytes);
    return bytes;
  }

  #text(text: string): void {
    this.#parts.push(Buffer.from(text));
  }
}

function inCanonicalOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inCanonicalOrder);
  return withSortedKeys(value as Readonly<Record<string, unknown>>, inCanonicalOrder);
}

/** A copy with sorted keys. JSON.stringify keeps their order, except for keys that are array indices. */
function withSortedKeys(
  fields: Readonly<Record<string, unknown>>,
  copy: (value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.keys(fields)
      .sort()
      .map((key) => [key, copy(fields[key])]),
  );
}

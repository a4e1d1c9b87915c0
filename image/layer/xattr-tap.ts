import { readPaxRecords, xattrsOf } from './pax-header.ts';

const BLOCK = 512;
/** Bytes of a PAX header; Linux keeps at most 64 KiB in one attribute (xattr(7)). */
const MAX_PAX_BYTES = 1024 * 1024;
/** Type flags of headers that say something of the entry after them (POSIX pax "x", "g"; GNU "L", "K"). */
const PAX = 'x';
const PREFACES = new Set(['x', 'g', 'L', 'K']);

type State =
  | { readonly kind: 'header' }
  | { readonly kind: 'pax'; readonly left: number; readonly padding: number }
  | { readonly kind: 'skip'; readonly left: number };

/**
 * Listens to a tar archive on its way to the reader of its entries, for the one thing that tar-stream takes for text
 * and so spoils: the bytes of extended attributes.
 */
export class XattrTap {
  readonly #entries: (ReadonlyMap<string, Uint8Array> | undefined)[] = [];
  #state: State = { kind: 'header' };
  #block: Uint8Array[] = [];
  #held = 0;
  #pax: ReadonlyMap<string, Uint8Array> | undefined;
  #size: number | undefined;

  /** @param chunk the next bytes of the archive. @throws RangeError for a PAX header that is larger than any can be. */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) at += this.#take(chunk, at);
  }

  /** @returns the attributes of the next entry, in the order of the archive; undefined where it has none. */
  next(): ReadonlyMap<string, Uint8Array> | undefined {
    return this.#entries.shift();
  }

  #take(chunk: Uint8Array, at: number): number {
    const state = this.#state;
    const there = chunk.length - at;
    if (state.kind === 'skip') {
      const taken = Math.min(there, state.left);
      const left = state.left - taken;
      this.#state = left === 0 ? { kind: 'header' } : { kind: 'skip', left };
      return taken;
    }
    const needed = (state.kind === 'header' ? BLOCK : state.left) - this.#held;
    const taken = Math.min(there, needed);
    this.#block.push(chunk.subarray(at, at + taken));
    this.#held += taken;
    if (taken === needed) this.#complete(state);
    return taken;
  }

  #complete(state: Exclude<State, { kind: 'skip' }>): void {
    const bytes = Buffer.concat(this.#block);
    this.#block = [];
    this.#held = 0;
    if (state.kind === 'pax') {
      const records = readPaxRecords(bytes);
      this.#pax = xattrsOf(records);
      this.#size = sizeAmong(records);
      this.#state = skip(state.padding);
    } else this.#state = this.#afterHeader(bytes);
  }

  #afterHeader(header: Buffer): State {
    // Zeroes end an archive.
    if (header.every((byte) => byte === 0)) return { kind: 'header' };
    const type = String.fromCharCode(header[156] ?? 0);
    const size = PREFACES.has(type) ? sizeOf(header) : (this.#size ?? sizeOf(header));
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if (type === PAX) {
      if (size > MAX_PAX_BYTES) throw new RangeError(`a PAX header of ${size} bytes`);
      return size === 0 ? skip(padding) : { kind: 'pax', left: size, padding };
    }
    if (!PREFACES.has(type)) {
      this.#entries.push(this.#pax === undefined || this.#pax.size === 0 ? undefined : this.#pax);
      this.#pax = undefined;
      this.#size = undefined;
    }
    return skip(size + padding);
  }
}

function skip(left: number): State {
  return left === 0 ? { kind: 'header' } : { kind: 'skip', left };
}

/** Octal digits, or base 256 where the first bit is set (GNU tar, for sizes beyond 8 GiB). */
function sizeOf(header: Buffer): number {
  const field = header.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) !== 0) return field.subarray(4).reduce((sum, byte) => sum * 256 + byte, 0);
  const digits = /[0-7]+/.exec(field.toString('latin1'))?.[0];
  return digits === undefined ? 0 : Number.parseInt(digits, 8);
}

/** POSIX pax: the size that counts, where a header has no room for it. */
function sizeAmong(records: ReadonlyMap<string, Uint8Array>): number | undefined {
  const size = records.get('size');
  // As tar-stream reads it: both have to find the next entry in the same place.
  const bytes = size === undefined ? Number.NaN : Number.parseInt(Buffer.from(size).toString('latin1'), 10);
  return Number.isNaN(bytes) ? undefined : bytes;
}

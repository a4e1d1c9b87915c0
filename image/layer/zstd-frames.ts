/** RFC 8878, 3.1.1. */
const FRAME = 0xfd2fb528;
/** RFC 8878, 3.1.2; the last four bits are free. */
const SKIPPABLE = 0x184d2a50;
/** Bytes by which the kinds of frames are distinguished, and the descriptor of a frame that has content. */
const START_BYTES = 5;
const CHECKSUM_BYTES = 4;
/** By the flags in the descriptor of a frame (RFC 8878, 3.1.1.1.1). */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;

/**
 * Cuts compressed bytes where one frame ends and another begins. A file may have many frames, and some that a
 * decompressor skips: zstd:chunked, for example, has one for each file of a layer. Node.js's decompressor ends with the
 * first frame when there is more behind it in what it is given, and goes on with what it is given next.
 *
 * @yields the same bytes; none of its pieces has parts of two frames. What is no frame is given as it comes.
 */
export async function* frameByFrame(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const walk = new FrameWalk();
  for await (const chunk of bytes) {
    let from = 0;
    for (let at = 0; at < chunk.length; ) {
      const length = Math.min(walk.left, chunk.length - at);
      const isEnd = walk.take(chunk.subarray(at, at + length));
      at += length;
      if (!isEnd) continue;
      yield chunk.subarray(from, at);
      from = at;
    }
    if (from < chunk.length) yield chunk.subarray(from);
  }
}

/** Follows the frames from one header to the next. */
class FrameWalk {
  /** Bytes until there is something to decide. */
  left = START_BYTES;
  #read: Buffer = Buffer.alloc(0);
  /** What the bytes are that are gathered; undefined while they are passed over. */
  #reading: 'start' | 'size' | 'block' | undefined = 'start';
  #then: 'block' | 'end' = 'block';
  #hasChecksum = false;

  /** @param bytes at most as many as are left. @returns whether a frame ends with them. */
  take(bytes: Uint8Array): boolean {
    if (this.#reading !== undefined) this.#read = Buffer.concat([this.#read, bytes]);
    this.left -= bytes.length;
    if (this.left > 0) return false;
    const read = this.#read;
    this.#read = Buffer.alloc(0);
    switch (this.#reading) {
      case 'start':
        return this.#start(read);
      case 'size':
        return this.#pass(read.readUInt32LE(4), 'end');
      case 'block':
        return this.#block(read.readUIntLE(0, 3));
      case undefined:
        return this.#next();
    }
  }

  #start(read: Buffer): boolean {
    const magic = read.readUInt32LE(0);
    if ((magic & ~0xf) >>> 0 === SKIPPABLE) {
      this.#read = read;
      return this.#gather('size', 8 - START_BYTES);
    }
    // Left to the decompressor, which reports what it is.
    if (magic !== FRAME) return this.#pass(Number.POSITIVE_INFINITY, 'end');
    const descriptor = read[START_BYTES - 1] ?? 0;
    const isSingleSegment = (descriptor & 0b10_0000) !== 0;
    this.#hasChecksum = (descriptor & 0b100) !== 0;
    const sizeFlag = descriptor >> 6;
    const sizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] ?? 0);
    const idBytes = DICTIONARY_ID_BYTES[descriptor & 0b11] ?? 0;
    return this.#pass((isSingleSegment ? 0 : 1) + idBytes + sizeBytes, 'block');
  }

  /** @param header of a block: whether it is the last one, its type and its size (RFC 8878, 3.1.1.2). */
  #block(header: number): boolean {
    const isRepeatedByte = ((header >> 1) & 0b11) === 1;
    const isLast = (header & 1) === 1;
    const length = isRepeatedByte ? 1 : header >> 3;
    return isLast
      ? this.#pass(length + (this.#hasChecksum ? CHECKSUM_BYTES : 0), 'end')
      : this.#pass(length, 'block');
  }

  #gather(what: 'start' | 'size' | 'block', length: number): false {
    this.#reading = what;
    this.left = length;
    return false;
  }

  #pass(length: number, then: 'block' | 'end'): boolean {
    this.#reading = undefined;
    this.#then = then;
    this.left = length;
    return length === 0 && this.#next();
  }

  #next(): boolean {
    if (this.#then === 'block') return this.#gather('block', 3);
    this.#gather('start', START_BYTES);
    return true;
  }
}

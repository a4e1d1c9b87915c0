import type { Header } from 'tar-stream';
import { ContentError } from '../registry/registry-error.ts';

/** How much is read of an archive: commands of a Containerfile decide what is in it. */
export interface ArchiveLimits {
  /** Bytes of all entries, which layers take on the disk. */
  readonly bytes: number;
  readonly entries: number;
  /** Bytes of one JSON document, and of all with the names of links, which are in memory. */
  readonly documentBytes: number;
  readonly memoryBytes: number;
}

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** An image has at most 1000 layers here; an engine writes a directory, a layer, a version and a document for each. */
export const ARCHIVE_LIMITS: ArchiveLimits = {
  bytes: 32 * GIB,
  entries: 10_000,
  documentBytes: 8 * MIB,
  memoryBytes: 64 * MIB,
};

/** An archive of more than may be taken. */
export class ArchiveTooLarge extends ContentError {
  constructor(what: string, most: number) {
    super(`the engine's archive has ${what}; expected at most ${most}`);
  }
}

/** Counts what an archive has, before any of it is read: an entry's header says how much follows. */
export class ArchiveCount {
  readonly #limits: ArchiveLimits;
  #bytes = 0;
  #entries = 0;
  #memory = 0;

  constructor(limits: ArchiveLimits) {
    this.#limits = limits;
  }

  /** @throws ArchiveTooLarge with this entry. */
  take({ name, linkname, size = 0 }: Header): void {
    const { bytes, entries } = this.#limits;
    this.#entries += 1;
    if (this.#entries > entries) throw new ArchiveTooLarge(`more than ${entries} entries`, entries);
    this.#bytes += size;
    if (this.#bytes > bytes)
      throw new ArchiveTooLarge(`${this.#bytes} bytes with ${JSON.stringify(name.slice(0, 100))}`, bytes);
    this.#hold(name.length + (linkname?.length ?? 0));
  }

  /** @returns whether a document may be read at all; one that is larger than any of an image is somebody's file. */
  mayRead({ size = 0 }: Header): boolean {
    if (size > this.#limits.documentBytes) return false;
    this.#hold(size);
    return true;
  }

  #hold(bytes: number): void {
    this.#memory += bytes;
    const { memoryBytes } = this.#limits;
    if (this.#memory > memoryBytes)
      throw new ArchiveTooLarge(`names and JSON documents of ${this.#memory} bytes`, memoryBytes);
  }
}

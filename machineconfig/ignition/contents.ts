import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { errorMessage } from '../../api/error-message.ts';
import type { Problem } from '../problem.ts';
import type { Resource } from './config.ts';
import { type DataUrl, decodeDataUrl, parseDataUrl } from './data-url.ts';

/** Limits for decompressed contents: a small object in the API can expand to gigabytes. */
export interface Limits {
  /** Bytes of one file. */
  readonly fileBytes: number;
  /** Bytes of all files of one config. */
  readonly configBytes: number;
}

export const DEFAULT_LIMITS: Limits = { fileBytes: 16 * 1024 * 1024, configBytes: 64 * 1024 * 1024 };

type Decoded = { readonly bytes: Uint8Array } | { readonly problem: Problem };

/** Valid uncompressed contents that were checked before, with their decoded sizes in bytes. */
export type CheckedContents = WeakMap<Resource, number>;

/** Decodes and checks the contents of one config's files, and counts them against the config's limit. */
export class ContentsReader {
  readonly #limits: Limits;
  readonly #checked: CheckedContents;
  #bytes = 0;

  /** @param checked what was checked before; renderings share it, to check contents once */
  constructor(limits: Limits, checked: CheckedContents = new WeakMap()) {
    this.#limits = limits;
    this.#checked = checked;
  }

  /**
   * Checks contents with as little decoding as possible: an uncompressed data URL is never shorter than its contents.
   *
   * @param path JSON path of the resource
   * @returns what is wrong: the data URL, its compression, its size or its verification hash
   */
  check(resource: Resource, path: string): Problem[] {
    const { source } = resource;
    const hash = resource.verification?.hash;
    if (source === undefined || (!isCompressed(resource) && hash === undefined)) {
      return source === undefined ? [] : this.#checkPlain(resource, source, path);
    }
    const decoded = this.decode(resource, path);
    if ('problem' in decoded) {
      return [decoded.problem];
    }
    const problem = hash === undefined ? undefined : verify(decoded.bytes, hash, `${path}.verification.hash`);
    return problem === undefined ? [] : [problem];
  }

  /**
   * Decodes contents. Their verification hash is left aside: on merging, MCO may put one config's hash beside another's
   * source, so it is checked on each config by itself and nowhere else.
   *
   * @returns the bytes as they reach the disk, decompressed; none for an absent source
   */
  decode(resource: Resource, path: string): Decoded {
    if (resource.source === undefined) {
      return { bytes: new Uint8Array() };
    }
    const url = parseSource(resource.source, path);
    if ('problem' in url) {
      return url;
    }
    const encoded = decodeDataUrl(url);
    const decoded = isCompressed(resource) ? this.#gunzip(encoded, path) : { bytes: encoded };
    if ('problem' in decoded) {
      return decoded;
    }
    const problem = this.#count(decoded.bytes.length, path);
    return problem === undefined ? decoded : { problem };
  }

  #checkPlain(resource: Resource, source: string, path: string): Problem[] {
    let length = this.#checked.get(resource);
    if (length === undefined) {
      const url = parseSource(source, path);
      if ('problem' in url) {
        return [url.problem];
      }
      length = url.length;
      this.#checked.set(resource, length);
    }
    const problem = this.#count(length, path);
    return problem === undefined ? [] : [problem];
  }

  #gunzip(encoded: Uint8Array, path: string): Decoded {
    const left = this.#limits.configBytes - this.#bytes;
    if (left < 0) return { problem: this.#configTooLarge(path) };
    const atMost = Math.min(this.#limits.fileBytes, left);
    try {
      // One byte over the limit is enough to know; zlib stops there.
      return { bytes: gunzipSync(encoded, { maxOutputLength: atMost + 1 }) };
    } catch (cause) {
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE')) {
        return { problem: notGzip(path, cause) };
      }
      // Files beyond the limit count too, so that a config with many of them doesn't decompress each.
      this.#bytes += atMost + 1;
      return {
        problem: left < this.#limits.fileBytes ? this.#configTooLarge(path) : this.#fileTooLarge(path),
      };
    }
  }

  #count(bytes: number, path: string): Problem | undefined {
    this.#bytes += bytes;
    if (bytes > this.#limits.fileBytes) {
      return this.#fileTooLarge(path);
    }
    return this.#bytes <= this.#limits.configBytes ? undefined : this.#configTooLarge(path);
  }

  #configTooLarge(path: string): Problem {
    return {
      path: `${path}.source`,
      reason: 'makes the files of the config too large together',
      expected: `at most ${this.#limits.configBytes} bytes of decompressed contents in one config`,
    };
  }

  #fileTooLarge(path: string): Problem {
    return {
      path: `${path}.source`,
      reason: 'is too large',
      expected: `at most ${this.#limits.fileBytes} bytes of decompressed contents in one file`,
    };
  }
}

function isCompressed(resource: Resource): boolean {
  return resource.compression === 'gzip';
}

/** An empty source is an empty file in Ignition 2. */
const NOTHING: DataUrl = { data: '', base64: false, length: 0 };

/**
 * MCO's validator lets a remote source pass and its daemon then fails on every node ("could not decode file content
 * string"); here it is refused before a node is touched.
 */
function parseSource(source: string, path: string): DataUrl | { readonly problem: Problem } {
  const url = source === '' ? NOTHING : parseDataUrl(source);
  if (typeof url !== 'string') {
    return url;
  }
  const scheme = /^(https?|tftp|s3|gs|arn|oem):/i.exec(source)?.[1];
  const reason =
    scheme === undefined
      ? url
      : `is a ${scheme.toLowerCase()} URL; a node fetches nothing to configure itself`;
  return { problem: { path: `${path}.source`, reason, expected: 'the contents as a data URL (RFC 2397)' } };
}

function notGzip(path: string, cause: unknown): Problem {
  const why = errorMessage(cause);
  return {
    path: `${path}.source`,
    reason: `can not be decompressed: ${why}`,
    expected: 'gzip data, because compression is gzip',
  };
}

const HASHES: ReadonlyMap<string, number> = new Map([
  ['sha256', 64],
  ['sha512', 128],
]);

/**
 * Checks the form of a verification hash (Ignition's Verification type).
 *
 * @returns in words what is wrong, or undefined
 */
export function whyNotHash(hash: string): string | undefined {
  const [algorithm = '', digest = ''] = hash.split(/-(.*)/s);
  const digits = HASHES.get(algorithm);
  if (digits === undefined) {
    return 'does not begin with a known hash function';
  }
  return digest.length === digits && /^[0-9a-f]+$/i.test(digest)
    ? undefined
    : `does not have the ${digits} hexadecimal digits of ${algorithm}`;
}

function verify(bytes: Uint8Array, hash: string, path: string): Problem | undefined {
  if (whyNotHash(hash) !== undefined) {
    return undefined; // The form has its own problem.
  }
  const algorithm = hash.slice(0, hash.indexOf('-'));
  const actual = createHash(algorithm).update(bytes).digest('hex');
  return actual === hash.slice(algorithm.length + 1).toLowerCase()
    ? undefined
    : { path, reason: 'is not the hash of the contents', expected: `${algorithm}-${actual}` };
}

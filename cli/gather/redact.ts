import { createHmac } from 'node:crypto';
import type { KubernetesObject } from '../../api/object.ts';
import { maskSecrets } from '../../api/secret-text.ts';
import { visible } from '../../api/visible-text.ts';
import { SHOWN_OPTIONS, SHOWN_SETTINGS, type Shown, shownOf } from './shown-fields.ts';

/** The one place where text leaves in an archive, for people who may not read the cluster's secrets. */
export class Redaction {
  readonly #key: Uint8Array;
  readonly #secrets: readonly string[];

  /**
   * @param key a secret of one archive that is kept nowhere: the same value has the same mark in all of the archive,
   *   and nobody can try values against a mark.
   * @param secrets values that no text may show, the longest first.
   */
  constructor(key: Uint8Array, secrets: readonly string[] = []) {
    this.#key = key;
    this.#secrets = secrets;
  }

  /**
   * @returns the object with the fields that may be shown (shown-fields.ts); others keep their names and lose their
   * values.
   */
  object(object: KubernetesObject): KubernetesObject {
    const { managedFields: _, ...metadata } = object.metadata as KubernetesObject['metadata'] & {
      readonly managedFields?: unknown;
    };
    return this.#show({ ...object, metadata }, shownOf(object.kind ?? '')) as KubernetesObject;
  }

  /** @returns text that people wrote or a program logged, without what looks like a secret. */
  text(text: string): string {
    const known = this.#secrets.reduce((left, secret) => left.replaceAll(secret, '(omitted)'), text);
    return visible(maskSecrets(withoutPrivateKeys(known)));
  }

  #show(value: unknown, shown: Shown | undefined): unknown {
    if (value === null || value === undefined) return value;
    if (Array.isArray(value)) {
      return shown === 'settings'
        ? value.map((item, index) => this.#setting(String(item), String(value[index - 1] ?? '')))
        : value.map((item) => this.#show(item, shown));
    }
    if (typeof value === 'object') {
      const fields = Object.entries(value).map(([name, field]: [string, unknown]) => [
        name,
        this.#show(field, typeof shown === 'object' ? shown[name] : shown === 'all' ? 'all' : undefined),
      ]);
      return Object.fromEntries(fields);
    }
    if (shown === 'all') return typeof value === 'string' ? this.text(value) : value;
    return this.#leftOut(value);
  }

  /** @param before the argument before it: an option may have its value there. */
  #setting(text: string, before: string): string {
    const at = text.indexOf('=');
    const name = at === -1 ? text : text.slice(0, at);
    if (SHOWN_SETTINGS.has(name) || SHOWN_OPTIONS.has(name)) return this.text(text);
    if (at !== -1) return `${this.text(name)}=${this.#leftOut(text.slice(at + 1))}`;
    return OPTION.test(text) || SHOWN_OPTIONS.has(before) ? this.text(text) : this.#leftOut(text);
  }

  #leftOut(value: unknown): string {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const mark = createHmac('sha256', this.#key).update(text).digest('hex').slice(0, MARK_LENGTH);
    return `(omitted: ${text.length} characters, #${mark})`;
  }
}

/** Hexadecimal digits: enough to tell the values of one archive apart. */
const MARK_LENGTH = 8;
const OPTION = /^--?[a-z-]{1,40}$/;

const BEGIN = '-----BEGIN ';
const KEY_TITLE = 'PRIVATE KEY-----';
const END = '-----END ';

/** RFC 7468. A key that has no end leaves out the rest: it was cut off. */
function withoutPrivateKeys(text: string): string {
  const pieces: string[] = [];
  let done = 0;
  for (
    let begin = text.indexOf(BEGIN);
    begin !== -1;
    begin = text.indexOf(BEGIN, Math.max(done, begin + 1))
  ) {
    const title = text.slice(begin + BEGIN.length, begin + BEGIN.length + LONGEST_TITLE);
    if (!title.includes(KEY_TITLE)) continue;
    const end = text.indexOf(END, begin);
    pieces.push(text.slice(done, begin), '(private key omitted)');
    done = end === -1 ? text.length : end;
  }
  return [...pieces, text.slice(done)].join('');
}

/** `ENCRYPTED PRIVATE KEY-----` and the like. */
const LONGEST_TITLE = 40;

import { by } from '../../api/order.ts';

/**
 * The forms in which a secret's value may appear in output: what `base64`, `xxd`, `od` or a URL make of it, or a
 * command that prints it letter by letter. A command that means to hide a value can always find another form: this is a
 * seat belt, and no reason to give a build a secret that its author must not know.
 */

/** What a form may have between its characters: blanks, and what people separate letters with. */
const SEPARATOR = /[\s:,;%|._-]/g;
const BETWEEN = String.raw`[\s:,;%|._-]*`;
/** The same between bytes, and what dumps print before each. */
const BETWEEN_BYTES = String.raw`(?:\\x|0x|[\s:,;%|._-])*`;
/** Longer values are found as they are, and in no other form: a pattern has several characters for each of theirs. */
const LONGEST_VALUE = 16 * 1024;
/** What base64(1) and PEM print on a line. */
const BASE64_LINES = [64, 76];
/** Shorter pieces are found in any text by chance. */
const SHORTEST_FORM = 6;

/**
 * @param value of a secret, or a line of one.
 * @returns a pattern that matches it in each form.
 */
export function secretPattern(value: string): RegExp {
  const literal = escaped(value);
  const bytes = Buffer.from(value);
  if (bytes.length > LONGEST_VALUE) return new RegExp(literal, 'g');
  const encoded = [bytes, Buffer.concat([bytes, Buffer.from('\n')])].flatMap(base64Forms);
  const spelled = [value, ...new Set(encoded)].map(withoutSeparators).filter(isLongEnough).map(spread);
  // Longest first, so that no form is masked in part because a piece of it is a form as well.
  const patterns = [literal, ...spelled, hexPattern(bytes), urlPattern(bytes)];
  return new RegExp(patterns.sort(by(({ length }) => -length)).join('|'), 'g');
}

/**
 * A value has three encodings, by where in the encoded text it begins; characters that depend on its neighbours are
 * left out.
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/(?<!=)=+$/, '');
    const isWhole = (offset + bytes.length) % 3 === 0;
    const own = text.slice(offset === 0 ? 0 : offset + 1, isWhole ? undefined : -1);
    const url = own.replaceAll('+', '-').replaceAll('/', '_');
    const lines = offset === 0 ? BASE64_LINES.flatMap((length) => chunks(own, length)) : [];
    return [own, url, ...lines];
  });
}

/**
 * A separator of the value itself is matched like any other. If it were part of the pattern, a line of nothing but
 * separators could be matched in so many ways that trying them would stop the builder.
 */
function withoutSeparators(text: string): string {
  return text.replace(SEPARATOR, '');
}

function isLongEnough(form: string): boolean {
  return form.length >= SHORTEST_FORM;
}

/** Each character, with or without separators before the next. */
function spread(text: string): string {
  return [...text].map(escaped).join(BETWEEN);
}

/** The bytes in hexadecimal, one by one or in groups, as xxd, od and hexdump -C print them. */
function hexPattern(bytes: Uint8Array): string {
  return [...bytes].map((byte) => anyCase(byte.toString(16).padStart(2, '0'))).join(BETWEEN_BYTES);
}

/** Percent-encoding (RFC 3986, 2.1), whichever characters it was found necessary for. */
function urlPattern(bytes: Buffer): string {
  return [...bytes]
    .map((byte) => {
      const encoded = `%${anyCase(byte.toString(16).padStart(2, '0'))}`;
      if (byte === 0x20) return `(?:${encoded}|\\+| )`;
      return byte > 0x20 && byte < 0x7f ? `(?:${encoded}|${escaped(String.fromCharCode(byte))})` : encoded;
    })
    .join('');
}

function anyCase(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

function chunks(text: string, length: number): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, at) =>
    text.slice(at * length, (at + 1) * length),
  );
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

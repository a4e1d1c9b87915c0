/**
 * Distinguished Encoding Rules (ITU-T X.690), as much of them as a certificate needs. Node can sign and can read
 * certificates, but it can't make one.
 */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** @returns tag, length and content (X.690, 8.1). */
export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | digits.length]), digits]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(TAG.sequence, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => element(TAG.set, ...parts);
export const boolean = (value: boolean): Buffer => element(TAG.boolean, Buffer.from([value ? 0xff : 0]));
export const utf8String = (text: string): Buffer => element(TAG.utf8String, Buffer.from(text, 'utf8'));
export const octetString = (content: Uint8Array): Buffer => element(TAG.octetString, content);

/** @param magnitude big-endian, not negative: a leading zero is added where the first bit would be taken for a sign. */
export function derInteger(magnitude: Uint8Array): Buffer {
  const sign = (magnitude[0] ?? 0) & 0x80 ? [0] : [];
  return element(TAG.integer, Buffer.from(sign), magnitude);
}

/** @param unused how many bits at the end of the last byte don't count. */
export function bitString(content: Uint8Array, unused = 0): Buffer {
  return element(TAG.bitString, Buffer.from([unused]), content);
}

/** @param dotted such as 2.5.4.3; the first two arcs share a byte (X.690, 8.19). */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest.flatMap(base128)];
  return element(TAG.oid, Buffer.from(bytes));
}

function base128(arc: number): number[] {
  const digits = [arc & 0x7f];
  for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) {
    digits.unshift((left & 0x7f) | 0x80);
  }
  return digits;
}

/** @returns YYYYMMDDHHMMSSZ. */
export function generalizedTime(time: Date): Buffer {
  return element(TAG.generalizedTime, Buffer.from(digitsOf(time), 'ascii'));
}

/** @returns YYMMDDHHMMSSZ, which readers complete with 19 from 50 on and with 20 below (RFC 5280, 4.1.2.5.1). */
export function utcTime(time: Date): Buffer {
  return element(TAG.utcTime, Buffer.from(digitsOf(time).slice(2), 'ascii'));
}

function digitsOf(time: Date): string {
  return time
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace(/[-:T]/g, '');
}

/**
 * Data URLs (RFC 2397) as the library behind Ignition and MCO reads them: the media type, if any, must be of a known
 * top-level type, `;base64` stands directly before the comma, and percent-encoded data is plain URL characters.
 */

const TOKEN = "[!#$%&'*+\\-.0-9A-Z^_`a-z{|}~]";
const HEADER = new RegExp(
  '^data:' +
    `(?:(?:(?:text|image|audio|video|application|message|multipart)${TOKEN}*|[xX]-${TOKEN}*)/${TOKEN}*)?` +
    `(?:;${TOKEN}+=(?:${TOKEN}+|"(?:[^"\\\\\\x00-\\x1f\\x7f-\\uffff]|\\\\[\\x20-\\x7e])*"))*` +
    '(;base64)?,',
);
/** Control characters, space, delimiters and unwise characters of RFC 2396; `%` is checked by itself. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must be found
const NOT_URL_CHARACTER = /[\x00-\x20<>#"{}|\\^[\]`\x7f-\uffff]/;
const NOT_BASE64 = /[^A-Za-z0-9+/]/;
/** The header of a data URL is short; looking no further keeps matching linear in hostile input. */
const MAX_HEADER = 1024;

/** A data URL whose form has been checked, not yet decoded. */
export interface DataUrl {
  readonly data: string;
  readonly base64: boolean;
  /** Bytes that the data decodes to. */
  readonly length: number;
}

/**
 * Checks the form of a data URL.
 *
 * @returns the checked parts, or in words what is wrong with it (without its contents, which may be a secret).
 */
export function parseDataUrl(url: string): DataUrl | string {
  const header = HEADER.exec(url.slice(0, MAX_HEADER));
  if (header === null) {
    return 'is not a data URL of the form data:[<media type>][;base64],<data>';
  }
  const data = url.slice(header[0].length);
  const base64 = header[1] !== undefined;
  const length = base64 ? base64Length(data) : percentLength(data);
  return typeof length === 'string' ? length : { data, base64, length };
}

/**
 * Standard alphabet with padding (RFC 4648 section 4). The library takes line feeds among it for nothing, which a block
 * of YAML has at its end; no other white space.
 *
 * @returns the number of bytes, or what is wrong.
 */
function base64Length(lines: string): number | string {
  const data = lines.replaceAll('\n', '');
  if (data.length % 4 !== 0) {
    return `has base64 data of ${data.length} characters, which is not a multiple of 4`;
  }
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  const length = (data.length / 4) * 3 - padding;
  // Decoding skips invalid characters, so that the result is too short. This is far cheaper than checking every
  // character.
  if (Buffer.from(data, 'base64').length === length && !data.includes('-') && !data.includes('_')) {
    return length;
  }
  const character = NOT_BASE64.exec(data.slice(0, data.length - padding));
  return `has ${JSON.stringify(character?.[0] ?? '=')} at ${character?.index ?? data.length} of its base64 data`;
}

/** @returns the number of bytes, or what is wrong. */
function percentLength(data: string): number | string {
  const character = NOT_URL_CHARACTER.exec(data);
  if (character !== null) {
    return `has the character ${JSON.stringify(character[0])} unescaped at ${character.index} of its data`;
  }
  let escapes = 0;
  for (let at = data.indexOf('%'); at >= 0; at = data.indexOf('%', at + 3)) {
    if (!isHexDigit(data.charCodeAt(at + 1)) || !isHexDigit(data.charCodeAt(at + 2))) {
      return `has a % without two hexadecimal digits at ${at} of its data`;
    }
    escapes++;
  }
  return data.length - 2 * escapes;
}

function isHexDigit(code: number): boolean {
  const lower = code | 0x20;
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}

/** @returns the bytes of a checked data URL. */
export function decodeDataUrl(url: DataUrl): Uint8Array {
  return url.base64 ? Buffer.from(url.data, 'base64') : decodePercent(url.data);
}

const PERCENT = 0x25;

function decodePercent(data: string): Uint8Array {
  const encoded = Buffer.from(data, 'latin1');
  let read = encoded.indexOf(PERCENT);
  if (read < 0) {
    return encoded;
  }
  let written = read;
  while (read < encoded.length) {
    const byte = encoded[read] ?? 0;
    if (byte === PERCENT) {
      encoded[written++] = (hexValue(encoded[read + 1] ?? 0) << 4) | hexValue(encoded[read + 2] ?? 0);
      read += 3;
    } else {
      encoded[written++] = byte;
      read += 1;
    }
  }
  return encoded.subarray(0, written);
}

/** '0' to '9' have their value in the low bits, 'A' to 'F' and 'a' to 'f' nine less than theirs. */
function hexValue(digit: number): number {
  return (digit & 0x0f) + (digit >> 6) * 9;
}

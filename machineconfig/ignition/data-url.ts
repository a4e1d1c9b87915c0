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
const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
const NOT_BASE64 = /[^A-Za-z0-9+/]/;
/** The header of a data URL is short; looking no further keeps matching linear in hostile input. */
const MAX_HEADER = 1024;

/** A data URL whose form has been checked, not yet decoded. */
export interface DataUrl {
  readonly data: string;
  readonly base64: boolean;
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
  const why = base64 ? whyNotBase64(data) : whyNotPercentEncoded(data);
  return why ?? { data, base64 };
}

function whyNotPercentEncoded(data: string): string | undefined {
  const character = NOT_URL_CHARACTER.exec(data);
  if (character !== null) {
    return `has the character ${JSON.stringify(character[0])} unescaped at ${character.index} of its data`;
  }
  const badEscape = BAD_ESCAPE.exec(data);
  return badEscape === null
    ? undefined
    : `has a % without two hexadecimal digits at ${badEscape.index} of its data`;
}

/** Standard alphabet with padding (RFC 4648 section 4), on one line. */
function whyNotBase64(data: string): string | undefined {
  const body = data.endsWith('==') ? data.slice(0, -2) : data.endsWith('=') ? data.slice(0, -1) : data;
  if (data.length % 4 !== 0) {
    return `has base64 data of ${data.length} characters, which is not a multiple of 4`;
  }
  const character = NOT_BASE64.exec(body);
  return character === null
    ? undefined
    : `has ${JSON.stringify(character[0])} at ${character.index} of its base64 data`;
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

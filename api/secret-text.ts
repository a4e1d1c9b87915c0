/**
 * Secrets in free text: lines of files, messages, logs. A value that can be left out as a whole is left out; this is
 * for text that people read all the same. The time is linear in the length of the text, which its author chooses.
 */

/** What stands for a value. */
const MASK = '…';

/** The user and password of a URL (RFC 3986, "Authority"). */
const USERINFO = /:\/\/[^\s/@"'<>]+@/g;
/** The credentials of an Authorization header (RFC 9110, section 11.4). */
const AUTHORIZATION = /\b(bearer|basic)([ \t]+)[\w.~+/-]{8,}=*/gi;

/** @returns the text with the credentials of URLs and of Authorization headers replaced by `…`. */
export function maskCredentials(text: string): string {
  return text.replace(USERINFO, `://${MASK}@`).replace(AUTHORIZATION, `$1$2${MASK}`);
}

/** @returns the same, and with the values of settings replaced whose names say that they are passwords or tokens. */
export function maskSecrets(text: string): string {
  return maskSettings(maskCredentials(text));
}

/** What would be a credential if the text went on. */
const CUT_CREDENTIAL = /(:\/\/|\b(?:bearer|basic)[ \t])[^\s/@"'<>]*$/i;

/**
 * @returns the first characters of a line without secrets, and `…` for the others. They are cut before they are read.
 */
export function maskStart(line: string, characters: number): string {
  if (line.length <= characters) return maskSecrets(line);
  const start = line.slice(0, characters).replace(CUT_CREDENTIAL, '$1');
  return `${maskSecrets(start)}…`;
}

/** A word that may be the name of a setting. */
const WORD = /[\w.-]+/g;
const SECRET_NAME =
  /(?:password|passwd|passphrase|secret|token|auth|credentials?|psk|(?:^|[_.-])(?:pass|pwd)|(?:api|private|access|secret|shared|signing|encryption|account)[-_]?key)$/i;
/** What is between a name and its value in shells, YAML, TOML, JSON, JSON within JSON, and unit files. */
const ASSIGNMENT = /\\?["']?[ \t]*[:=][ \t]*/y;
/** Between an option of a command and its value. */
const OPTION_GAP = /[ \t]+/y;
const OPENING = /\\?["']?/y;
const BARE_VALUE = /[^\s"']*/y;

function maskSettings(text: string): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    // A word within a value that was masked already.
    if (index < done || !SECRET_NAME.test(word)) continue;
    const end = index + word.length;
    const start =
      matchAt(ASSIGNMENT, text, end) ?? (word.startsWith('--') ? matchAt(OPTION_GAP, text, end) : undefined);
    if (start === undefined) continue;
    const open = matchAt(OPENING, text, start) ?? start;
    const close = endOfValue(text, text.slice(start, open), open);
    if (close === open) continue;
    pieces.push(text.slice(done, open), MASK);
    done = close;
  }
  return [...pieces, text.slice(done)].join('');
}

/** @param opening the quote before the value, with a backslash where it is in JSON within JSON, or nothing. */
function endOfValue(text: string, opening: string, from: number): number {
  const quote = opening.at(-1);
  if (quote !== '"' && quote !== "'") return matchAt(BARE_VALUE, text, from) ?? from;
  const escapes = opening.length === 1;
  let at = from;
  while (at < text.length && text[at] !== '\n') {
    if (text.startsWith(opening, at) || text[at] === quote) break;
    at += escapes && text[at] === '\\' ? 2 : 1;
  }
  return Math.min(at, text.length);
}

/** @returns where the match of a sticky pattern ends; undefined without one. */
function matchAt(pattern: RegExp, text: string, from: number): number | undefined {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

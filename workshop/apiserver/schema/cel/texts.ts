import type { Environment } from '@marcbachmann/cel-js';

/**
 * `matches(text, pattern)`, which CEL has beside `text.matches(pattern)`; replace of its extended strings; find and
 * findAll of the API server (library/regex.go).
 */
export function registerTexts(environment: Environment): Environment {
  return environment
    .registerFunction('matches(string, string): bool', (text: string, pattern: string) =>
      regExpOf(pattern).test(text),
    )
    .registerFunction('string.replace(string, string): string', (text: string, part: string, by: string) =>
      replaced(text, part, by, -1n),
    )
    .registerFunction('string.replace(string, string, int): string', replaced)
    .registerFunction(
      'string.find(string): string',
      (text: string, pattern: string) => regExpOf(pattern).exec(text)?.[0] ?? '',
    )
    .registerFunction('string.findAll(string): list<string>', (text: string, pattern: string) =>
      found(text, pattern),
    )
    .registerFunction(
      'string.findAll(string, int): list<string>',
      (text: string, pattern: string, most: bigint) =>
        most < 0n ? found(text, pattern) : found(text, pattern).slice(0, Number(most)),
    );
}

/** @returns the text with the first occurrences of a part replaced; a negative number means all of them. */
function replaced(text: string, part: string, by: string, most: bigint): string {
  const pieces = text.split(part);
  const last = most < 0n ? pieces.length - 1 : Math.min(Number(most), pieces.length - 1);
  return [pieces.slice(0, last + 1).join(by), ...pieces.slice(last + 1)].join(part);
}

/** Every match but the empty ones at the end of another, as Go finds them. */
function found(text: string, pattern: string): readonly string[] {
  const matches = [...text.matchAll(regExpOf(pattern, 'g'))];
  return matches
    .filter((match, i) => {
      const before = matches[i - 1];
      return match[0] !== '' || before === undefined || before.index + before[0].length !== match.index;
    })
    .map(([whole]) => whole);
}

/** @throws Error for a pattern that is none: the rule does not hold. */
function regExpOf(pattern: string, flags = ''): RegExp {
  return new RegExp(pattern, flags);
}

/** Classes of Go's syntax that JavaScript's lacks (regexp/syntax, "ASCII character classes"). */
const CLASSES: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  blank: '\\t ',
  digit: '0-9',
  lower: 'a-z',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

/**
 * @returns a text whose patterns are in Go's syntax, such as an expression, with classes like `[:xdigit:]` spelled out.
 */
export function javaScriptPattern(text: string): string {
  return text.replaceAll(/\[:([a-z]+):\]/g, (whole, name: string) => CLASSES[name] ?? whole);
}

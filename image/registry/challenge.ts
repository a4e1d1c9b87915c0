/** What a registry asks for with a 401. */
export type Challenge =
  | { readonly scheme: 'basic' }
  | {
      readonly scheme: 'bearer';
      readonly realm: string;
      readonly service?: string;
      /** Each is a right to ask for; none where the registry does not say. */
      readonly scopes: readonly string[];
    };

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const SEPARATORS = /[\s,]*/y;
const PARAMETER = new RegExp(`(${TOKEN})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))`, 'y');
/** With credentials of its own that are no parameters, as Negotiate has them. */
const SCHEME = new RegExp(`(${TOKEN})(?:[ \\t]+[A-Za-z0-9._~+/-]+=*(?=\\s*(?:,|$)))?`, 'y');

interface Parsed {
  readonly scheme: string;
  readonly parameters: Map<string, string>;
}

/**
 * Reads WWW-Authenticate: one or several challenges, in one header or several joined by commas (RFC 9110, 11.6.1;
 * distribution's token.md). Pure.
 *
 * @returns those that can be answered, in the header's order; what can't be read ends the list.
 */
export function parseChallenges(header: string): Challenge[] {
  return [...split(header)].flatMap(({ scheme, parameters }): Challenge[] => {
    if (scheme === 'basic') return [{ scheme }];
    const realm = parameters.get('realm');
    if (scheme !== 'bearer' || realm === undefined || !URL.canParse(realm)) return [];
    const service = parameters.get('service');
    const scopes = (parameters.get('scope') ?? '').split(/\s+/).filter((scope) => scope !== '');
    return [{ scheme, realm, scopes, ...(service === undefined ? {} : { service }) }];
  });
}

function* split(header: string): Generator<Parsed> {
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(header);
    at += found?.[0].length ?? 0;
    return found;
  };
  let current: Parsed | undefined;
  for (match(SEPARATORS); at < header.length; match(SEPARATORS)) {
    const parameter = current === undefined ? null : match(PARAMETER);
    if (parameter !== null) {
      const [, key = '', quoted, plain = ''] = parameter;
      current?.parameters.set(key.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain);
      continue;
    }
    if (current !== undefined) yield current;
    const scheme = match(SCHEME)?.[1];
    if (scheme === undefined) return;
    current = { scheme: scheme.toLowerCase(), parameters: new Map() };
  }
  if (current !== undefined) yield current;
}

import { byCodeUnits } from '../../../api/order.ts';
import { compareNumbers } from './version-parts.ts';

/**
 * The order of Alpine's versions (apk-package(5), "pkgver"): `number{.number}{letter}{_suffix{number}}{~hash}{-rN}`.
 * As apk 3 has it; apk 2 differs in numbers behind leading zeros alone.
 *
 * @returns negative, 0 or positive, for `sort`.
 */
export function compareApkVersions(a: string, b: string): number {
  const [left, right] = [tokensOf(a), tokensOf(b)];
  for (let at = 0; ; at += 1) {
    const [one, two] = [left[at], right[at]];
    if (one === undefined && two === undefined) return 0;
    const order = one?.kind === two?.kind ? compareSame(one, two) : compareKinds(one, two);
    if (order !== 0) return order;
  }
}

/** Where one version goes on as the other doesn't, the kind that stands first here is the greater. */
const KINDS = ['number', 'letter', 'suffix', 'suffix number', 'hash', 'revision'] as const;

interface Token {
  readonly kind: (typeof KINDS)[number];
  readonly text: string;
}

const PRE_SUFFIXES = ['alpha', 'beta', 'pre', 'rc'];
const SUFFIXES = [...PRE_SUFFIXES, 'cvs', 'svn', 'git', 'hg', 'p'];
const TOKEN =
  /(?<number>^[0-9]+|\.[0-9]+)|(?<letter>[a-z])|_(?<suffix>[a-z]+)(?<count>[0-9]*)|~(?<hash>[0-9a-f]+)|-r(?<revision>[0-9]+)/gy;

/** What no version has ends it. */
function tokensOf(version: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const { groups = {} } of version.matchAll(TOKEN)) {
    const { number, letter, suffix, count, hash, revision } = groups;
    if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (letter !== undefined) tokens.push({ kind: 'letter', text: letter });
    else if (suffix !== undefined) {
      if (!SUFFIXES.includes(suffix)) return tokens;
      tokens.push({ kind: 'suffix', text: suffix });
      if (count !== undefined && count !== '') tokens.push({ kind: 'suffix number', text: count });
    } else if (hash !== undefined) tokens.push({ kind: 'hash', text: hash });
    else if (revision !== undefined) tokens.push({ kind: 'revision', text: revision });
  }
  return tokens;
}

function compareSame(a: Token | undefined, b: Token | undefined): number {
  if (a === undefined || b === undefined) return 0;
  switch (a.kind) {
    case 'number':
      return compareComponents(a.text, b.text);
    case 'letter':
    case 'hash':
      return byCodeUnits(a.text, b.text);
    case 'suffix':
      return SUFFIXES.indexOf(a.text) - SUFFIXES.indexOf(b.text);
    case 'suffix number':
    case 'revision':
      return compareNumbers(a.text, b.text);
  }
}

/** All but the first are compared as texts where one begins with 0, as decimals: `1.09` comes before `1.1`. */
function compareComponents(a: string, b: string): number {
  const isDecimal = a.startsWith('.0') || b.startsWith('.0');
  return isDecimal ? byCodeUnits(a, b) : compareNumbers(a.replace('.', ''), b.replace('.', ''));
}

function compareKinds(a: Token | undefined, b: Token | undefined): number {
  if (isBefore(a)) return -1;
  if (isBefore(b)) return 1;
  const place = (token: Token | undefined) =>
    token === undefined ? KINDS.length : KINDS.indexOf(token.kind);
  return place(b) - place(a);
}

/** Of a version that comes before the one without it. */
function isBefore(token: Token | undefined): boolean {
  return token?.kind === 'suffix' && PRE_SUFFIXES.includes(token.text);
}

import path from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { errorMessage } from '../../api/error-message.ts';
import { parseApkInstalled } from './database/apk-installed.ts';
import { parseDpkgStatus } from './database/dpkg-status.ts';
import { readRpmDatabase } from './database/rpm-database.ts';
import type { FileFacts } from './file-facts.ts';
import { firstStatement, statementsOf } from './statements.ts';
import { sysusersAccounts } from './sysusers.ts';

/** A kind of file whose content is read. */
export interface KnownFile {
  /** Bytes that such a file may have; a larger one is not kept in memory, and its facts say so. */
  readonly most: number;
  /** @param path without a leading slash. Directories may be links, so it is the end of the path that counts. */
  isAt(path: string): boolean;
  /** Whether content that begins so is of this kind: files of an ostree commit have digests for names. */
  begins(head: Uint8Array): boolean;
  /** @param bytes all of the file; they may be changed. @throws what is wrong with it. */
  read(bytes: Uint8Array): FileFacts;
}

const MIB = 1024 * 1024;
/** Debian's largest installations have a status of some 10 MiB. */
const MOST_TEXT = 32 * MIB;
/** Headers have some 30 KiB, so three thousand packages; for a moment three times as much is in memory. */
const MOST_DATABASE = 96 * MIB;
const MOST_SETTINGS = MIB;

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
const beginsWith =
  (magic: string, at = 0) =>
  (head: Uint8Array): boolean =>
    Buffer.from(head.subarray(at, at + magic.length)).toString('latin1') === magic;

/** A database of which only its kind is known. */
const unreadable = (isAt: RegExp, begins: KnownFile['begins'], why: string): KnownFile => ({
  most: MOST_DATABASE,
  isAt: (file) => isAt.test(file),
  begins,
  read: () => ({ kind: 'unreadable', why }),
});

export const knownFiles: readonly KnownFile[] = [
  {
    most: MOST_TEXT,
    isAt: (file) => /(^|\/)(status|status\.d\/[^/]+)$/.test(file) && !file.endsWith('.md5sums'),
    begins: beginsWith('Package: '),
    read: (bytes) => ({ kind: 'packages', format: 'dpkg', packages: [...parseDpkgStatus(textOf(bytes))] }),
  },
  {
    most: MOST_DATABASE,
    isAt: (file) => path.basename(file) === 'rpmdb.sqlite',
    begins: beginsWith('SQLite format 3\0'),
    read: (bytes) => ({ kind: 'packages', format: 'rpm', packages: [...readRpmDatabase(bytes)] }),
  },
  unreadable(
    /(^|\/)rpmdb\.sqlite-wal$/,
    (head) => [0x82, 0x83].includes(head[3] ?? 0) && beginsWith('\x37\x7f\x06')(head),
    'has a write-ahead log, whose packages are not in the database itself; expected one that rpm has closed',
  ),
  unreadable(/(^|\/)Packages\.db$/, beginsWith('RpmP'), "is in RPM's ndb format; only SQLite's is read"),
  unreadable(
    /(^|\/)rpm\/Packages$/,
    beginsWith('\x61\x15\x06\0', 12),
    'is in the Berkeley DB format; only SQLite is read',
  ),
  {
    most: MOST_TEXT,
    isAt: (file) => /(^|\/)apk\/db\/installed$/.test(file),
    begins: (head) => /^[A-Za-z]:/.test(textOf(head.subarray(0, 2))),
    read: (bytes) => ({ kind: 'packages', format: 'apk', packages: [...parseApkInstalled(textOf(bytes))] }),
  },
  {
    most: MOST_SETTINGS,
    // A release with several variants has a file for each, and a link to one of them.
    isAt: (file) => path.basename(file).startsWith('os-release'),
    begins: (head) => /^(NAME|ID|PRETTY_NAME|VERSION|VERSION_ID)=/.test(firstStatement(textOf(head))),
    read: (bytes) => ({ kind: 'osRelease', fields: osReleaseFields(textOf(bytes)) }),
  },
  {
    most: MOST_SETTINGS,
    isAt: (file) => /(^|\/)kargs\.d\/[^/]+\.toml$/.test(file),
    begins: (head) => /^(kargs|match-architectures)\b/.test(firstStatement(textOf(head))),
    read: (bytes) => kernelArguments(textOf(bytes)),
  },
  {
    most: MOST_SETTINGS,
    isAt: (file) => /(^|\/)system-preset\/[^/]+\.preset$/.test(file),
    begins: (head) => /^(enable|disable|ignore)\s/.test(firstStatement(textOf(head))),
    read: (bytes) => ({ kind: 'presets', rules: [...statementsOf(textOf(bytes))] }),
  },
  {
    most: MOST_SETTINGS,
    isAt: (file) => /(^|\/)sysusers\.d\/[^/]+\.conf$/.test(file),
    begins: (head) => /^([umr]!?|g)\s/.test(firstStatement(textOf(head))),
    read: (bytes) => ({ kind: 'sysusers', accounts: [...sysusersAccounts(textOf(bytes))] }),
  },
];

/** @returns the facts of a file, or that it can't be read and why. */
export function factsOf(file: KnownFile, bytes: Uint8Array): FileFacts {
  try {
    return file.read(bytes);
  } catch (error) {
    return { kind: 'unreadable', why: errorMessage(error) };
  }
}

const OS_FIELDS: ReadonlySet<string> = new Set(['ID', 'NAME', 'PRETTY_NAME', 'VERSION_ID']);

/** os-release(5): shell assignments without expansions. */
function osReleaseFields(text: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const line of statementsOf(text)) {
    const equals = line.indexOf('=');
    const name = line.slice(0, Math.max(0, equals));
    if (OS_FIELDS.has(name)) fields[name] = unquoted(line.slice(equals + 1)).slice(0, 256);
  }
  return Object.fromEntries(Object.entries(fields).sort());
}

function unquoted(value: string): string {
  const quote = value[0];
  const isQuoted = value.length > 1 && (quote === '"' || quote === "'") && value.endsWith(quote);
  const bare = isQuoted ? value.slice(1, -1) : value;
  return quote === "'" ? bare : bare.replace(/\\(["'`$\\])/g, '$1');
}

function kernelArguments(text: string): FileFacts {
  const { kargs = [], 'match-architectures': architectures } = parseToml(text);
  if (!isTexts(kargs)) throw new TypeError('kargs is not a list of texts');
  if (architectures === undefined) return { kind: 'kernelArguments', arguments: [...kargs] };
  if (!isTexts(architectures)) throw new TypeError('match-architectures is not a list of texts');
  return { kind: 'kernelArguments', arguments: [...kargs], architectures: [...architectures] };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

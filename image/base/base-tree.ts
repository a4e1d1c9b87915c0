import { gunzipSync, gzipSync } from 'node:zlib';
import { by } from '../../api/order.ts';
import type { FileFacts } from '../contents/file-facts.ts';
import type { Xattrs } from '../layer/entry.ts';
import { ContentError } from '../registry/registry-error.ts';

/** A node of the tree. Links and files never change; directories do, while layers are folded. */
export type BaseNode = BaseDirectory | BaseLink | BaseFile;

export interface BaseDirectory {
  readonly kind: 'directory';
  mode: number;
  uid: number;
  gid: number;
  xattrs: Xattrs | undefined;
  readonly children: Map<string, BaseNode>;
  /**
   * The last layer that has an entry for it: whiteouts of a layer speak of lower ones only (OCI image-spec, layer.md).
   */
  layer: LayerMark;
}

export interface BaseLink {
  readonly kind: 'link';
  readonly target: string;
  readonly layer: LayerMark;
}

export interface BaseFile {
  readonly kind: 'file';
  readonly layer: LayerMark;
  /** Of a file that may list accounts. */
  readonly text?: string;
  /** Of a file whose content is read for people. */
  readonly facts?: FileFacts;
}

/** Stands for one layer while it is folded. */
export type LayerMark = symbol;

/** Of a tree that was read: below any layer that is folded on it. */
const READ: LayerMark = Symbol('read');

/** What makes a parent that no layer has an entry for: every unpacker gives it to root, and most with this mode. */
const IMPLIED_MODE = 0o755;

/** @returns a directory that a layer only passes through. */
export function impliedDirectory(layer: LayerMark): BaseDirectory {
  return {
    kind: 'directory',
    mode: IMPLIED_MODE,
    uid: 0,
    gid: 0,
    xattrs: undefined,
    children: new Map(),
    layer,
  };
}

/** Texts that name accounts; those of /etc come before those of /usr/lib (nss-altfiles, as on ostree systems). */
const ACCOUNTS = { users: ['/usr/lib/passwd', '/etc/passwd'], groups: ['/usr/lib/group', '/etc/group'] };

/** @returns whether a path's text is one that names accounts. @param path without a leading slash. */
export function namesAccounts(path: string): boolean {
  return /^(etc|usr\/etc|usr\/lib)\/(passwd|group)$/.test(path);
}

/** Bytes of a file that may list accounts. */
export const MAX_ACCOUNTS_BYTES = 1024 * 1024;

/**
 * Whether a text begins like passwd(5) or group(5). Files of an ostree commit in a container are hard links to objects,
 * which are named by their digest (ostree-ext, "tar export"): which of them are lists of accounts shows only later.
 */
export function looksLikeAccounts(text: string): boolean {
  return /^[A-Za-z_][^:\n]*:[^:\n]*:\d+:/.test(text);
}

/**
 * @param texts of passwd(5) or group(5); a later one comes before an earlier one.
 * @returns numbers by name.
 */
function accountsIn(texts: readonly string[]): ReadonlyMap<string, number> {
  const accounts = new Map<string, number>();
  for (const text of texts) {
    for (const line of text.split('\n')) {
      const [name = '', , id = ''] = line.split(':');
      if (name !== '' && /^\d+$/.test(id)) accounts.set(name, Number(id));
    }
  }
  return accounts;
}

/**
 * What the layers of an image make together: every directory and link, the names of files, the accounts that the image
 * itself knows, and the facts of a few files. Contents of files are not in it, so its size follows the number of paths.
 */
export class BaseTree {
  readonly root: BaseDirectory;
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;

  /** Whether its files have their facts: there are records from before facts were kept. */
  readonly hasFacts: boolean;

  /** @param root is not changed any more. */
  constructor(root: BaseDirectory, { hasFacts = true }: { readonly hasFacts?: boolean } = {}) {
    this.root = root;
    this.hasFacts = hasFacts;
    const textAt = (path: string) => {
      const node = nodeAt(root, path);
      return node?.kind === 'file' ? (node.text ?? '') : '';
    };
    this.users = accountsIn(ACCOUNTS.users.map(textAt));
    this.groups = accountsIn(ACCOUNTS.groups.map(textAt));
  }

  /** @param path absolute and normal; no link is followed. @returns what is there. */
  at(path: string) {
    const node = nodeAt(this.root, path);
    if (node?.kind !== 'directory') return node;
    const { kind, mode, uid, gid, xattrs, children } = node;
    return {
      kind,
      mode,
      uid,
      gid,
      isEmpty: children.size === 0,
      ...(xattrs === undefined ? {} : { xattrs }),
    };
  }
}

function nodeAt(root: BaseDirectory, path: string): BaseNode | undefined {
  let node: BaseNode | undefined = root;
  for (const name of path.split('/').filter((part) => part !== '')) {
    node = node?.kind === 'directory' ? node.children.get(name) : undefined;
  }
  return node;
}

/** @returns a copy of a directory that can be changed without the original. */
export function copyOfTree(directory: BaseDirectory): BaseDirectory {
  return {
    ...directory,
    children: new Map(
      [...directory.children].map(([name, node]) => [
        name,
        node.kind === 'directory' ? copyOfTree(node) : node,
      ]),
    ),
    layer: READ,
  };
}

/**
 * A file is 0 or its text, a link its target in a list, a directory its mode, owner, children by name, and attributes.
 */
type Packed = 0 | string | readonly [target: string] | PackedDirectory;
type PackedDirectory = readonly [
  mode: number,
  uid: number,
  gid: number,
  children: readonly (readonly [name: string, node: Packed])[],
  xattrs?: readonly (readonly [name: string, base64: string])[],
];

/** A record's text may have so many bytes: some ten million paths. */
const MAX_BYTES = 512 * 1024 * 1024;

/** @returns the tree as bytes, the same for the same tree. */
export function formatBaseTree({ root }: BaseTree): Uint8Array {
  return gzipSync(JSON.stringify(pack(root, '')), { level: 6 });
}

function pack(node: BaseNode, path: string): Packed {
  if (node.kind === 'link') return [node.target];
  // An empty text names no account, and would be read as one that is unknown.
  if (node.kind === 'file') return namesAccounts(path) ? (node.text ?? '') : 0;
  const { mode, uid, gid, xattrs, children } = node;
  const sorted = [...children].sort(by(([name]) => name));
  const packed = sorted.map(
    ([name, child]) => [name, pack(child, path === '' ? name : `${path}/${name}`)] as const,
  );
  if (xattrs === undefined) return [mode, uid, gid, packed];
  const attributes = Object.keys(xattrs)
    .sort()
    .map((name) => [name, Buffer.from(xattrs[name] ?? []).toString('base64')] as const);
  return [mode, uid, gid, packed, attributes];
}

/**
 * @param bytes of a record whose digest was verified. @param where for the message of an error.
 * @throws ContentError for anything but what formatBaseTree writes.
 */
export function parseBaseTree(bytes: Uint8Array, where: string): BaseTree {
  try {
    const packed: unknown = JSON.parse(gunzipSync(bytes, { maxOutputLength: MAX_BYTES }).toString('utf8'));
    const root = unpack(packed);
    if (root.kind !== 'directory') throw new TypeError('its root is no directory');
    return new BaseTree(root, { hasFacts: false });
  } catch (cause) {
    throw new ContentError(`${where}: is no record of a base image`, { cause });
  }
}

function unpack(packed: unknown): BaseNode {
  if (packed === 0) return { kind: 'file', layer: READ };
  if (typeof packed === 'string') return { kind: 'file', layer: READ, text: packed };
  if (!Array.isArray(packed)) throw new TypeError('a node is no list');
  const [first, uid, gid, children, attributes] = packed as readonly unknown[];
  if (typeof first === 'string') return { kind: 'link', target: first, layer: READ };
  if (![first, uid, gid].every(Number.isInteger) || !Array.isArray(children)) {
    throw new TypeError('a directory has no mode, owner or children');
  }
  return {
    kind: 'directory',
    mode: first as number,
    uid: uid as number,
    gid: gid as number,
    xattrs: attributes === undefined ? undefined : unpackAttributes(attributes),
    children: new Map(children.map((child: unknown) => unpackNamed(child, unpack))),
    layer: READ,
  };
}

function unpackAttributes(attributes: unknown): Xattrs {
  if (!Array.isArray(attributes)) throw new TypeError('attributes are no list');
  return Object.fromEntries(
    attributes.map((each: unknown) =>
      unpackNamed(each, (text) => Uint8Array.from(Buffer.from(String(text), 'base64'))),
    ),
  );
}

function unpackNamed<T>(pair: unknown, unpackValue: (value: unknown) => T): [string, T] {
  const [name, value] = Array.isArray(pair) ? (pair as readonly unknown[]) : [];
  if (typeof name !== 'string') throw new TypeError('an entry has no name');
  return [name, unpackValue(value)];
}

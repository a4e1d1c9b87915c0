import type { FileFacts } from '../contents/file-facts.ts';
import { partsOf, walkTo } from '../contents/file-tree.ts';
import { factsOf, type KnownFile, knownFiles } from '../contents/known-files.ts';
import type { LayerItem } from '../layer/entry.ts';
import {
  type BaseDirectory,
  type BaseFile,
  type BaseNode,
  BaseTree,
  copyOfTree,
  impliedDirectory,
  type LayerMark,
  looksLikeAccounts,
  MAX_ACCOUNTS_BYTES,
  namesAccounts,
} from './base-tree.ts';

/** Bytes of a path, as the kernel takes it (path_resolution(7), PATH_MAX); nothing can unpack a longer one. */
const LONGEST_PATH = 4096;
/** Where a container of an ostree commit has the content that its paths are hard links to. */
const OSTREE_OBJECT = /(^|\/)ostree\/repo\/objects\/[^/]+\/[^/]+\.file$/;
const OSTREE_OBJECTS = [
  ['sysroot', 'ostree', 'repo', 'objects'],
  ['ostree', 'repo', 'objects'],
] as const;

/**
 * Packages and files whose facts are kept of one image. Small layers can hold very many, and each takes some hundred
 * bytes of memory.
 */
const MOST_FACTS = 200_000;
/** Bytes of one image that are kept until their facts are read: several databases, one over the other. */
const MOST_FACT_BYTES = 512 * 1024 * 1024;

/**
 * Folds the layers of an image, lowest first, into one tree (OCI image-spec, layer.md "Applying Changesets"): an entry
 * replaces what is there unless both are directories, whose attributes it sets; whiteouts and opaque directories take
 * away what lower layers have.
 */
export class LayerFold {
  readonly #root: BaseDirectory;
  readonly #hasFacts: boolean;
  #facts = 0;
  #factBytes = 0;
  #layer: LayerMark = Symbol('below');
  /** Files of one layer without a text are one value. */
  #file: BaseFile = { kind: 'file', layer: this.#layer };

  /** @param below what lower layers have made; it is not changed. */
  constructor(below?: BaseTree) {
    this.#root = below === undefined ? impliedDirectory(this.#layer) : copyOfTree(below.root);
    this.#hasFacts = below?.hasFacts ?? true;
  }

  /** @throws what reading the items throws; then nothing of the fold is of use. */
  async add(items: AsyncIterable<LayerItem>): Promise<void> {
    this.#layer = Symbol('layer');
    this.#file = { kind: 'file', layer: this.#layer };
    for await (const item of items) await this.#take(item);
  }

  /** @returns the tree; the fold ends with it. */
  finish(): BaseTree {
    for (const way of OSTREE_OBJECTS) this.#forget(way);
    useUsrEtc(this.#root);
    return new BaseTree(this.#root, { hasFacts: this.#hasFacts });
  }

  async #take(item: LayerItem): Promise<void> {
    if (item.path.length > LONGEST_PATH) return;
    const parts = partsOf(item.path);
    const name = parts.pop();
    if (item.type === 'whiteout' || item.type === 'opaque') {
      this.#takeAway(item.type, parts, name);
      return;
    }
    if (name === undefined) {
      if (item.type === 'directory') Object.assign(this.#root, this.#directory(item, this.#root));
      return;
    }
    const parent = this.#directoryAt(parts, (above, missing) => this.#made(above, missing));
    if (parent === undefined) return;
    switch (item.type) {
      case 'directory': {
        const there = parent.children.get(name);
        if (there?.kind === 'directory') Object.assign(there, this.#directory(item, there));
        else parent.children.set(name, this.#directory(item, undefined));
        return;
      }
      case 'symlink':
        parent.children.set(name, { kind: 'link', target: item.target, layer: this.#layer });
        return;
      case 'hardlink':
        parent.children.set(name, this.#linked(item.target));
        return;
      case 'file':
        parent.children.set(name, await this.#fileOf(item.path, item.content));
    }
  }

  #directory(
    { mode, uid, gid, xattrs }: Extract<LayerItem, { readonly type: 'directory' }>,
    there: BaseDirectory | undefined,
  ): BaseDirectory {
    const children = there?.children ?? new Map<string, BaseNode>();
    return { kind: 'directory', mode, uid, gid, xattrs, children, layer: this.#layer };
  }

  async #fileOf(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<BaseFile> {
    const isObject = OSTREE_OBJECT.test(path);
    const known = isObject ? knownFiles : knownFiles.filter((each) => each.isAt(path));
    const mayListAccounts = isObject || namesAccounts(path);
    if (known.length === 0 && !mayListAccounts) return this.#file;
    let kind: KnownFile | undefined;
    const bytes = await keptContent(content, (head) => {
      if (mayListAccounts && looksLikeAccounts(textOf(head))) return MAX_ACCOUNTS_BYTES;
      kind = known.find((each) => each.begins(head));
      return kind === undefined ? 0 : Math.min(kind.most, MOST_FACT_BYTES - this.#factBytes);
    });
    if (kind !== undefined) return { ...this.#file, facts: this.#factsOf(kind, bytes) };
    return bytes === undefined ? this.#file : { ...this.#file, text: textOf(bytes) };
  }

  #factsOf(kind: KnownFile, bytes: Uint8Array | undefined): FileFacts {
    if (bytes === undefined) {
      const why = `has more than ${Math.min(kind.most, MOST_FACT_BYTES - this.#factBytes)} bytes, and is not read`;
      return { kind: 'unreadable', why };
    }
    this.#factBytes += bytes.length;
    const facts = factsOf(kind, bytes);
    this.#facts += facts.kind === 'packages' ? facts.packages.length : 1;
    if (this.#facts <= MOST_FACTS) return facts;
    return { kind: 'unreadable', why: `is left out: the image has more than ${MOST_FACTS} packages` };
  }

  /**
   * One inode has two names (link(2)): a hard link to a link is a link. Containers of ostree commits have theirs so.
   */
  #linked(target: string): BaseNode {
    const parts = partsOf(target);
    const name = parts.pop() ?? '';
    const node = this.#directoryAt(parts)?.children.get(name);
    return node === undefined || node.kind === 'directory' ? this.#file : { ...node, layer: this.#layer };
  }

  #takeAway(type: 'whiteout' | 'opaque', parts: readonly string[], name: string | undefined): void {
    // The mark of an opaque directory lies in it.
    const isMark = type === 'opaque' && name !== undefined;
    const directory = this.#directoryAt(isMark ? [...parts, name] : parts);
    if (directory === undefined) return;
    if (type === 'opaque') this.#hideChildren(directory);
    else if (name !== undefined) this.#hide(directory, name);
  }

  /** What this layer has itself stays: a whiteout speaks of lower layers, wherever it stands. */
  #hide(parent: BaseDirectory, name: string): void {
    const node = parent.children.get(name);
    if (node === undefined) return;
    if (node.kind === 'directory') {
      this.#hideChildren(node);
      if (node.layer === this.#layer) return;
      if (node.children.size === 0) parent.children.delete(name);
      else parent.children.set(name, { ...impliedDirectory(this.#layer), children: node.children });
    } else if (node.layer !== this.#layer) parent.children.delete(name);
  }

  #hideChildren(directory: BaseDirectory): void {
    for (const name of [...directory.children.keys()]) this.#hide(directory, name);
  }

  /**
   * A parent without an entry may be a link below, which unpackers follow within the image.
   *
   * @returns the directory; undefined where it is missing.
   */
  #directoryAt(
    way: readonly string[],
    onMissing?: Parameters<typeof walkTo<BaseDirectory>>[2],
  ): BaseDirectory | undefined {
    const node = walkTo(this.#root, way, onMissing);
    return node?.kind === 'directory' ? node : undefined;
  }

  #made(parent: BaseDirectory, name: string): BaseDirectory {
    const made = impliedDirectory(this.#layer);
    parent.children.set(name, made);
    return made;
  }

  /** No path of a node leads to an object but by its hard links, which are resolved. */
  #forget(way: readonly string[]): void {
    this.#directoryAt(way)?.children.clear();
  }
}

/** Bytes that decide what a file is: a licence stands before the first line of many settings. */
const HEAD_BYTES = 4096;

/**
 * @param mostFor is given the beginning of a file, the same however it arrives, and says how many bytes are kept of it.
 * @returns the content; undefined where it is not to be kept or has more bytes.
 */
async function keptContent(
  content: Uint8Array | AsyncIterable<Uint8Array>,
  mostFor: (head: Uint8Array) => number,
): Promise<Uint8Array | undefined> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  let most: number | undefined;
  for await (const chunk of content instanceof Uint8Array ? [content] : content) {
    // The rest is read and left: the layer goes on behind it.
    if (most !== undefined && size > most) continue;
    size += chunk.length;
    chunks.push(chunk);
    if (most === undefined && size >= HEAD_BYTES)
      most = mostFor(Buffer.concat(chunks).subarray(0, HEAD_BYTES));
    if (most !== undefined && size > most) chunks = [];
  }
  most ??= mostFor(Buffer.concat(chunks));
  return most === 0 || size > most ? undefined : Buffer.concat(chunks);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}

/**
 * A tree that was checked out of an ostree commit and put into an image as it is has its /etc at /usr/etc, where ostree
 * and rpm-ostree also look for it.
 */
function useUsrEtc(root: BaseDirectory): void {
  const etc = root.children.get('etc');
  const usr = root.children.get('usr');
  const usrEtc = usr?.kind === 'directory' ? usr.children.get('etc') : undefined;
  const hasEtc = etc?.kind === 'directory' ? etc.children.size > 0 : etc !== undefined;
  if (!hasEtc && usrEtc?.kind === 'directory') root.children.set('etc', usrEtc);
}
